#include "convert/scan.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iostream>
#include <memory>
#include <system_error>

#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/unique_handle.hpp"

namespace shard::convert {

namespace {

std::string errno_text(int error) { return std::generic_category().message(error); }

struct DirTraits {
  using type = DIR*;
  static type invalid() noexcept { return nullptr; }
  static void close(type dir) noexcept { ::closedir(dir); }
};
using UniqueDir = UniqueHandle<DirTraits>;

using FileId = std::pair<dev_t, ino_t>;

struct Walk {
  InputList& list;
  std::vector<FileId> ancestors;  // folders on the way down: a folder that is its own ancestor is a loop
};

void reject(Walk& walk, const std::string& path, std::string reason) {
  walk.list.rejects.push_back({escape_key(path), std::move(reason)});
}

// The way back up is no class of its own.
void reject_loop(Walk& walk, const std::string& path) {
  reject(walk, path, "symbolic link loop");
  if (path.find('/') == std::string::npos) std::erase(walk.list.folders, path);
}

// `dir_fd` is consumed. `prefix` is the folder's path with a trailing '/', empty for the root.
void walk_folder(Walk& walk, int dir_fd, const std::string& prefix);

void enter_folder(Walk& walk, int parent_fd, const char* name, const std::string& prefix) {
  const std::string path = prefix + name;
  const int fd = ::openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    if (error == EMFILE || error == ENFILE)
      throw Error(
          ErrorCode::resource,
          fmt::format("folder '{}': {} (nested too deep for the limit on open files: raise 'ulimit -n')",
                      escape_key((walk.list.root / path).string()), errno_text(error)));
    return reject(walk, path, "unreadable folder: " + errno_text(error));
  }
  walk_folder(walk, fd, path + "/");
}

void visit(Walk& walk, int dir_fd, const dirent& entry, const std::string& prefix) {
  const char* name = entry.d_name;
  unsigned char type = entry.d_type;
  if (type == DT_LNK || type == DT_UNKNOWN) {
    struct stat info {};
    if (::fstatat(dir_fd, name, &info, 0) != 0)
      return reject(walk, prefix + name,
                    errno == ELOOP ? "symbolic link loop" : "unreadable: " + errno_text(errno));
    type = S_ISDIR(info.st_mode) ? DT_DIR : DT_REG;
  }
  if (type == DT_DIR) {
    if (prefix.empty()) walk.list.folders.emplace_back(name);
    enter_folder(walk, dir_fd, name, prefix);
  } else {
    walk.list.inputs.push_back({prefix + name});
  }
}

void walk_folder(Walk& walk, int dir_fd, const std::string& prefix) {
  UniqueDir dir(::fdopendir(dir_fd));
  if (!dir) {
    const int error = errno;
    ::close(dir_fd);
    return reject(walk, prefix, "unreadable folder: " + errno_text(error));
  }
  struct stat info {};
  if (::fstat(dir_fd, &info) != 0) return reject(walk, prefix, "unreadable folder: " + errno_text(errno));
  const FileId id{info.st_dev, info.st_ino};
  if (std::find(walk.ancestors.begin(), walk.ancestors.end(), id) != walk.ancestors.end())
    return reject_loop(walk, prefix.substr(0, prefix.size() - 1));
  walk.ancestors.push_back(id);
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    const int read_error = errno;
    if (entry == nullptr) {
      if (read_error != 0)
        throw Error(ErrorCode::io,
                    fmt::format("reading folder '{}': {}", escape_key((walk.list.root / prefix).string()),
                                errno_text(read_error)));
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    visit(walk, dir_fd, *entry, prefix);
  }
  walk.ancestors.pop_back();
}

InputList scan_folder(const std::string& images) {
  InputList list;
  list.root = images;
  const int fd = ::open(images.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    if (error == ENOENT)
      throw Error(ErrorCode::not_found, fmt::format("no such folder: '{}'", escape_key(images)));
    if (error == ENOTDIR)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is not a folder (a list of paths is given as '@{}')", escape_key(images),
                              images));
    throw Error(ErrorCode::io,
                fmt::format("cannot read folder '{}': {}", escape_key(images), errno_text(error)));
  }
  Walk walk{list, {}};
  walk_folder(walk, fd, "");
  return list;
}

// The deepest folder that all paths lie in, with a trailing '/', or empty.
std::string common_folder(const std::vector<Input>& inputs) {
  std::string common = inputs.front().path.substr(0, inputs.front().path.rfind('/') + 1);
  for (const Input& input : inputs) {
    while (!input.path.starts_with(common)) {
      common.pop_back();
      common.resize(common.rfind('/') + 1);  // npos + 1 = 0
    }
  }
  return common;
}

InputList scan_list(std::istream& in, const std::string& name, const std::filesystem::path& root) {
  InputList list;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) list.inputs.push_back({std::filesystem::path(line).lexically_normal().string()});
  }
  if (in.bad()) throw Error(ErrorCode::io, fmt::format("reading the list {} failed", name));
  if (list.inputs.empty()) return list;
  std::string prefix = root.empty() ? common_folder(list.inputs) : root.lexically_normal().string();
  if (!prefix.empty() && prefix.back() != '/') prefix += '/';
  if (prefix == "./") prefix.clear();
  list.root = prefix;
  for (Input& input : list.inputs) {
    if (!input.path.starts_with(prefix))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' in {} is not below --root '{}'", escape_key(input.path), name, prefix));
    input.path.erase(0, prefix.size());
    const auto slash = input.path.find('/');
    if (slash != std::string::npos) list.folders.push_back(input.path.substr(0, slash));
  }
  return list;
}

}  // namespace

std::string Input::key() const { return escape_key(path); }

InputList scan(const std::string& images, const std::filesystem::path& list_root) {
  InputList list;
  if (images == "-") {
    list = scan_list(std::cin, "on standard input", list_root);
  } else if (images.starts_with("@")) {
    const std::string file = images.substr(1);
    std::ifstream in(file, std::ios::binary);
    if (!in)
      throw Error(ErrorCode::not_found,
                  fmt::format("cannot read the list '{}': {}", file, errno_text(errno)));
    list = scan_list(in, "'" + file + "'", list_root);
  } else {
    list = scan_folder(images);
  }
  if (list.inputs.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no files found in '{}': nothing to convert", escape_key(images)));
  std::sort(list.inputs.begin(), list.inputs.end(),
            [](const Input& a, const Input& b) { return a.path < b.path; });
  std::sort(list.folders.begin(), list.folders.end());
  list.folders.erase(std::unique(list.folders.begin(), list.folders.end()), list.folders.end());
  auto twice = std::adjacent_find(list.inputs.begin(), list.inputs.end(),
                                  [](const Input& a, const Input& b) { return a.path == b.path; });
  if (twice != list.inputs.end())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is listed twice: keys must be unique", twice->key()));
  std::sort(list.rejects.begin(), list.rejects.end(),
            [](const Reject& a, const Reject& b) { return a.key < b.key; });
  return list;
}

}  // namespace shard::convert
