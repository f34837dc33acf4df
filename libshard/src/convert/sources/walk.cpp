// Walks a folder of images: which files below it are inputs, which folders are classes. Top-level folders are
// walked on several threads.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <set>

#include "base/files/file_io.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "base/unique_handle.hpp"
#include "convert/sources/source_kind.hpp"
#include "shard/error.hpp"
#include "shard/image/file_kind.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

struct DirTraits {
  using type = DIR*;
  static type invalid() noexcept { return nullptr; }
  static void close(type dir) noexcept { ::closedir(dir); }
};
using UniqueDir = UniqueHandle<DirTraits>;

using FolderId = std::pair<dev_t, ino_t>;

// A folder and those above it, up to the root. Shared, because a link is followed after the walk has left the
// folder that contains it.
struct Way {
  FolderId id;
  std::shared_ptr<const Way> up;
};
using WayPtr = std::shared_ptr<const Way>;

bool passes(const Way* way, const FolderId& id) {
  for (; way != nullptr; way = way->up.get())
    if (way->id == id) return true;
  return false;
}

// The names of folders and of links to folders in a folder. Sorted by bytes, so that the order of readdir
// does not matter.
struct Folders {
  std::vector<std::string> real;
  std::vector<std::string> links;
};

// One thread's: what it finds is added to its list.
class Walk {
 public:
  // `arrays`: .npy files in place of images.
  Walk(InputList& list, int root_fd, bool arrays) : list_(list), root_fd_(root_fd), arrays_(arrays) {}

  WayPtr root() const {
    struct stat info {};
    if (::fstat(root_fd_, &info) != 0) fail("", errno);
    return std::make_shared<Way>(Way{{info.st_dev, info.st_ino}, nullptr});
  }

  // Lists the files beside the top-level folders, and returns these and the links to folders, in the order of
  // the paths below them: "a-b/1.jpg" comes before "a/1.jpg".
  std::vector<std::string> read_root() {
    const int fd = ::openat(root_fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) fail("", errno);
    Folders folders = read_folder(fd, "");
    std::vector<std::string> tops = std::move(folders.real);
    tops.insert(tops.end(), folders.links.begin(), folders.links.end());
    for (std::string& name : tops) name += '/';
    std::sort(tops.begin(), tops.end());
    for (std::string& name : tops) name.pop_back();
    return tops;
  }

  // Walks one top-level folder, or a link to one: it may become a class.
  void walk_top(const std::string& name, const WayPtr& root) {
    const std::size_t inputs = list_.inputs.size();
    unreadable_ = false;
    looped_ = false;
    walked_.clear();
    links_.clear();
    follow(name, root);
    // Links are followed in the order of (links passed, path): one round for each number of links.
    while (!links_.empty()) {
      std::vector<Link> round;
      round.swap(links_);
      std::sort(round.begin(), round.end(), [](const Link& a, const Link& b) { return a.path < b.path; });
      for (const Link& link : round) follow(link.path, link.way);
    }
    if (list_.inputs.size() > inputs || unreadable_)
      list_.folders.push_back(name);
    else if (!looped_)
      list_.empty_folders.push_back(escape_key(name));
  }

 private:
  struct Link {
    std::string path;
    WayPtr way;
  };

  [[noreturn]] void fail(const std::string& prefix, int error) const {
    throw Error(ErrorCode::io,
                fmt::format("cannot read folder {}: {}", quoted(list_.root / prefix), errno_text(error)));
  }

  // It becomes a reject, so that it is not lost. A class folder with such a reject keeps its number.
  void reject_unreadable(const std::string& path, const std::string& what, int error) {
    list_.rejects.push_back({escape_key(path), what + errno_text(error)});
    unreadable_ = true;
  }

  void reject_loop(const std::string& path) {
    list_.rejects.push_back({escape_key(path), "symbolic link loop"});
  }

  void skip(const std::string& path, SkipReason reason) {
    list_.skipped.push_back({escape_key(path), reason});
  }

  // Walks the folder or link `path`, relative to the root.
  void follow(const std::string& path, const WayPtr& way) {
    const bool top = path.find('/') == std::string::npos;
    const int fd = ::openat(root_fd_, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return not_opened(path, errno);
    if (!walk_folder(fd, path + "/", way) && top) looped_ = true;
  }

  void not_opened(const std::string& path, int error) {
    if (error == EMFILE || error == ENFILE)
      throw Error(
          ErrorCode::resource,
          fmt::format("cannot open folder {}: {} (it is nested too deep for the limit on open files: raise "
                      "'ulimit -n')",
                      quoted(list_.root / path), errno_text(error)));
    reject_unreadable(path, "unreadable folder: ", error);
  }

  // Closes `dir_fd`. `prefix` is the folder's path with a trailing '/'. Returns false for a loop.
  bool walk_folder(int dir_fd, const std::string& prefix, const WayPtr& up) {
    const std::string path = prefix.substr(0, prefix.size() - 1);
    struct stat info {};
    if (::fstat(dir_fd, &info) != 0) {
      reject_unreadable(path, "unreadable folder: ", errno);
      ::close(dir_fd);
      return true;
    }
    const FolderId id{info.st_dev, info.st_ino};
    if (passes(up.get(), id)) {
      ::close(dir_fd);
      reject_loop(path);
      return false;
    }
    if (!walked_.insert(id).second) {
      ::close(dir_fd);
      skip(path, SkipReason::walked);
      return true;
    }
    const WayPtr way = std::make_shared<Way>(Way{id, up});
    // The descriptor stays open, because folders below are opened relative to it. So paths may have any
    // length.
    const UniqueFd fd(::fcntl(dir_fd, F_DUPFD_CLOEXEC, 0));
    const int dup_error = errno;
    if (!fd) {
      ::close(dir_fd);
      not_opened(path, dup_error);
      return true;
    }
    const Folders folders = read_folder(dir_fd, prefix);
    for (const std::string& name : folders.links) links_.push_back({prefix + name, way});
    for (const std::string& name : folders.real) {
      const int below = ::openat(fd.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (below < 0)
        not_opened(prefix + name, errno);
      else
        walk_folder(below, prefix + name + "/", way);
    }
    return true;
  }

  // Lists or skips the files, and returns the folders. Closes `dir_fd`.
  Folders read_folder(int dir_fd, const std::string& prefix) {
    Folders folders;
    const UniqueDir dir(::fdopendir(dir_fd));
    if (!dir) {
      reject_unreadable(prefix, "unreadable folder: ", errno);
      ::close(dir_fd);
      return folders;
    }
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(dir.get());
      const int error = errno;
      if (entry == nullptr && error != 0) fail(prefix, error);
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") visit(dir_fd, *entry, prefix, folders);
    }
    std::sort(folders.real.begin(), folders.real.end());
    std::sort(folders.links.begin(), folders.links.end());
    return folders;
  }

  void visit(int dir_fd, const dirent& entry, const std::string& prefix, Folders& folders) {
    const char* name = entry.d_name;
    if (const auto reason = skip_by_name(name)) return skip(prefix + name, *reason);
    unsigned char type = entry.d_type;
    struct stat info {};
    if (type == DT_UNKNOWN) {
      if (::fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return reject_unreadable(prefix + name, "unreadable: ", errno);
      type = S_ISDIR(info.st_mode) ? DT_DIR : S_ISLNK(info.st_mode) ? DT_LNK : DT_REG;
    }
    if (type == DT_DIR) {
      folders.real.emplace_back(name);
      return;
    }
    if (type == DT_LNK) {
      if (::fstatat(dir_fd, name, &info, 0) != 0) {
        if (errno == ELOOP) return reject_loop(prefix + name);
        return reject_unreadable(prefix + name, "unreadable: ", errno);
      }
      if (S_ISDIR(info.st_mode)) {
        folders.links.emplace_back(name);
        return;
      }
    }
    const bool is_input = arrays_
                              ? std::string_view(name).ends_with(".npy")
                              : has_image_name(name) || is_image_file(dir_fd, name, entry.d_type == DT_REG);
    if (is_input)
      list_.inputs.push_back({prefix + name});
    else
      skip(prefix + name, SkipReason::no_image);
  }

  InputList& list_;
  int root_fd_;
  bool arrays_;
  // Of the top-level folder that is being walked.
  std::set<FolderId> walked_;
  std::vector<Link> links_;
  bool unreadable_ = false;
  bool looped_ = false;
};

template <class T>
void take_all(std::vector<T>& all, std::vector<T>&& more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
  more = {};
}

// Adds what parts of a walk have found, whose memory is given back on the way.
void append_parts(InputList& list, std::vector<InputList>&& parts) {
  std::size_t inputs = list.inputs.size();
  for (const InputList& part : parts) inputs += part.inputs.size();
  list.inputs.reserve(inputs);
  for (InputList& part : parts) {
    take_all(list.inputs, std::move(part.inputs));
    take_all(list.folders, std::move(part.folders));
    take_all(list.empty_folders, std::move(part.empty_folders));
    take_all(list.rejects, std::move(part.rejects));
    take_all(list.skipped, std::move(part.skipped));
  }
}

InputList walk_folder(const std::filesystem::path& root, int root_fd, bool arrays, unsigned threads) {
  constexpr std::size_t kMostParts = 4096;
  InputList list;
  list.root = root;
  Walk beside(list, root_fd, arrays);
  const WayPtr way = beside.root();
  const std::vector<std::string> tops = beside.read_root();
  std::vector<InputList> parts(std::min(tops.size(), kMostParts));
  parallel_for(threads, parts.size(), [&](unsigned, std::uint64_t i) {
    InputList& part = parts[i];
    part.root = root;
    Walk walk(part, root_fd, arrays);
    for (std::size_t top = tops.size() * i / parts.size(); top < tops.size() * (i + 1) / parts.size(); ++top)
      walk.walk_top(tops[top], way);
    std::sort(part.inputs.begin(), part.inputs.end(),
              [](const Input& a, const Input& b) { return a.path < b.path; });
  });
  append_parts(list, std::move(parts));
  return list;
}

// What to do with a file that was given as the folder of images.
std::string file_advice(const std::string& path) {
  const std::string end = ascii_lower(std::filesystem::path(path).extension().native());
  for (const char* const packed : {".zip", ".7z", ".rar", ".gz", ".tgz", ".xz", ".zst", ".bz2"})
    if (end == packed)
      return " (archives of this kind are unpacked first; tar archives are read as they are)";
  for (const char* const film : {".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg"})
    if (end == film) return " (videos are not read: write their frames as images first)";
  if (!end.empty() && image::is_image_extension(end.substr(1)))
    return " (of one image, the folder that it is in)";
  return fmt::format(" (a list of paths is given as {})", quoted("@" + path));
}

// A folder of data sets is no folder of images, even if images lie beside them.
void refuse_data_sets(const std::filesystem::path& images, const InputList& list) {
  std::error_code error;
  for (const std::string& name : list.empty_folders) {
    const std::filesystem::path folder = images / unescape_key(name);
    if (std::filesystem::is_regular_file(folder / "dataset.json", error) &&
        std::filesystem::is_regular_file(folder / "shard-00000.safetensors", error))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is a data set, so {} is not a folder of images: open {}, or give a folder "
                              "that has images alone",
                              quoted(folder), quoted(images), quoted(folder)));
  }
}

}  // namespace

InputList scan_folder(const ScanOptions& options) {
  const std::string& images = options.images;
  const UniqueFd fd(::open(images.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) {
    const int error = errno;
    if (error == ENOENT)
      throw Error(ErrorCode::not_found,
                  fmt::format("no such folder: {}{}", quoted(images), missing_advice(images)));
    if (error == ENOTDIR)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is not a folder: give the folder that holds the images{}", quoted(images),
                              file_advice(images)));
    throw Error(ErrorCode::io, fmt::format("cannot read folder {}: {}", quoted(images), errno_text(error)));
  }
  const bool arrays = is_single(options.layout);
  InputList list;
  try {
    list = walk_folder(images, fd.get(), arrays, thread_count(options.jobs));
  } catch (const Error& error) {
    // One thread has fewer folders open at once, so nested ones may be within the limit on open files.
    if (error.code() != ErrorCode::resource) throw;
    list = walk_folder(images, fd.get(), arrays, 1);
  }
  refuse_data_sets(images, list);
  if (arrays) read_array_files(list, options.layout);
  return list;
}

}  // namespace shard::convert
