// Reads a list of paths: what their keys are relative to, and which folders are classes.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "convert/sources/input_file.hpp"
#include "convert/sources/source_kind.hpp"
#include "remote/http/address.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

namespace {

namespace fs = std::filesystem;

constexpr unsigned kLooksAtOnce = 64;  // files of a server

bool is_absolute(std::string_view path) { return path.starts_with('/'); }

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Folders between a key and the root.
std::size_t depth_of(std::string_view key) {
  return static_cast<std::size_t>(std::count(key.begin(), key.end(), '/'));
}

// Addresses stay as they are: of S3, names may hold any parts.
std::string plain_path(const std::string& path) {
  return is_remote(path) ? path : fs::path(path).lexically_normal().string();
}

std::vector<std::string> read_paths(std::istream& in, const std::string& name) {
  std::vector<std::string> paths;
  std::uint64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    if (++number == 1) line.erase(0, line.size() - without_byte_order_mark(line).size());
    if (!line.empty() && line.back() == '\r') line.pop_back();
    // Systems would read another file: the path up to that byte.
    if (line.find('\0') != std::string::npos)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the list {}: line {} has a zero byte: give UTF-8 text in which each path ends "
                              "with a line break (find without -print0)",
                              name, number));
    if (!line.empty()) paths.push_back(plain_path(line));
  }
  if (in.bad()) throw Error(ErrorCode::io, fmt::format("reading the list {} failed", name));
  return paths;
}

std::vector<std::string> read_list_file(const std::string& file, const std::string& name) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    throw Error(ErrorCode::not_found,
                fmt::format("cannot read the list {}: {}", name, std::generic_category().message(errno)));
  return read_paths(in, name);
}

// Moves the paths for which `reason_of` gives a reason to `skipped`.
template <class ReasonOf>
void skip_paths(std::vector<std::string>& paths, std::vector<Skip>& skipped, ReasonOf reason_of) {
  std::vector<std::string> kept;
  kept.reserve(paths.size());
  for (std::string& path : paths) {
    if (const std::optional<SkipReason> reason = reason_of(path))
      skipped.push_back({escape_key(path), *reason});
    else
      kept.push_back(std::move(path));
  }
  paths = std::move(kept);
}

// Judges a path by its last part and by the content of the file. The folders above are judged later, below
// the root, because the root itself may be in a hidden folder.
std::optional<SkipReason> reason_of_file(const std::string& path) {
  const std::string_view name = name_of(path);
  if (const auto reason = skip_by_name(name)) return reason;
  if (has_image_name(name) || is_remote(path) || is_image_file(AT_FDCWD, path.c_str())) return std::nullopt;
  return SkipReason::no_image;
}

// The deepest folder that all paths lie in, with a trailing '/', or empty.
std::string common_folder(const std::vector<std::string>& paths) {
  std::string common = paths.front().substr(0, paths.front().rfind('/') + 1);
  for (const std::string& path : paths) {
    while (!path.starts_with(common)) {
      common.pop_back();
      common.resize(common.rfind('/') + 1);  // npos + 1 = 0
    }
  }
  return common;
}

std::string absolute_path(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

// Text with the keys of two paths below `root`: the one in the fewest folders and the one in the most.
std::string two_keys(const std::vector<std::string>& paths, const std::string& root) {
  const auto [low, high] = std::minmax_element(
      paths.begin(), paths.end(),
      [](const std::string& a, const std::string& b) { return depth_of(a) < depth_of(b); });
  return fmt::format("with `root` {} the keys would be {} and {}", quoted(root.empty() ? "." : root),
                     quoted(low->substr(root.size())), quoted(high->substr(root.size())));
}

constexpr const char* kGiveRoot = "give `root`: the folder that contains the class folders";

// The root of a list if none is given: the deepest common folder. One wrong path would move that folder, so
// it is accepted only if all paths are in the folder itself, or if all are in subfolders of it.
std::string obvious_root(const std::vector<std::string>& paths, const std::string& name) {
  const auto relative =
      std::find_if(paths.begin(), paths.end(), [](const auto& p) { return !is_absolute(p); });
  const auto absolute =
      std::find_if(paths.begin(), paths.end(), [](const auto& p) { return is_absolute(p); });
  if (relative != paths.end() && absolute != paths.end()) {
    std::vector<std::string> same = paths;
    for (std::string& path : same) path = absolute_path(path);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the list {} has both relative and absolute paths ({}, "
                            "{}), so its classes are not obvious: {}; {}",
                            name, quoted(*relative), quoted(*absolute), two_keys(same, common_folder(same)),
                            kGiveRoot));
  }
  std::string root = common_folder(paths);
  const auto [low, high] = std::minmax_element(
      paths.begin(), paths.end(), [](const auto& a, const auto& b) { return depth_of(a) < depth_of(b); });
  const std::size_t above = depth_of(root);
  const bool alike = depth_of(*low) == depth_of(*high) && depth_of(*low) - above <= 1;
  if (!alike)
    throw Error(ErrorCode::invalid_argument, fmt::format("the classes of the list {} are not obvious: {}; {}",
                                                         name, two_keys(paths, root), kGiveRoot));
  return root;
}

// `path` relative to `root` (with a trailing '/', or empty). Nothing if it is not below the root.
std::optional<std::string> key_below(const std::string& path, const std::string& root,
                                     const std::string& absolute_root) {
  std::string key;
  if (is_absolute(path) == is_absolute(root) && path.starts_with(root)) {
    key = path.substr(root.size());
  } else if (is_absolute(path) != is_absolute(root)) {
    const std::string whole = absolute_path(path);
    if (!whole.starts_with(absolute_root)) return std::nullopt;
    key = whole.substr(absolute_root.size());
  } else {
    return std::nullopt;
  }
  if (key.empty() || key.starts_with('/') || key == ".." || key.starts_with("../")) return std::nullopt;
  return key;
}

bool is_there(const fs::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

// Finds the classes. A folder without a single existing file is not a class: it may come from one wrong path,
// and would change the numbers of other classes. If the root was given, the paths in such a folder become
// rejects. If not, they are refused, because the root was derived from them too. `list.inputs` must be
// sorted.
void take_classes(InputList& list, const std::string& name, bool root_given) {
  std::vector<Input> kept;
  for (auto first = list.inputs.begin(); first != list.inputs.end();) {
    const std::size_t slash = first->path.find('/');
    const bool in_folder = slash != std::string::npos;
    const std::string prefix = in_folder ? first->path.substr(0, slash + 1) : "";
    const std::string folder = prefix.substr(0, in_folder ? slash : 0);
    const auto last = std::find_if(first, list.inputs.end(), [&](const Input& input) {
      return in_folder ? !input.path.starts_with(prefix) : input.path.find('/') != std::string::npos;
    });
    const bool there = !in_folder || list.server || std::any_of(first, last, [&](const Input& input) {
      return is_there(list.root / input.path);
    });
    if (!there && !root_given)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format(
              "the list {} names files in the folder {}, but none of them exists (first {}): correct the "
              "list, or give `root` {} (keys are then like {}): then these files become "
              "rejects, and the folder is not a class",
              name, quoted(folder), quoted(list.root / first->path),
              quoted(list.root.empty() ? "." : list.root), quoted_key(first->key())));
    if (there && in_folder) list.folders.push_back(folder);
    for (; first != last; ++first) {
      if (there)
        kept.push_back(std::move(*first));
      else
        list.rejects.push_back({first->key(), "cannot open: no listed file of its folder is there"});
    }
  }
  list.inputs = std::move(kept);
}

// Whether the list has addresses. Both kinds together are refused.
bool has_addresses(const std::vector<std::string>& paths, const std::string& name) {
  const auto count =
      std::count_if(paths.begin(), paths.end(), [](const auto& path) { return is_remote(path); });
  if (count != 0 && static_cast<std::size_t>(count) != paths.size())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the list {} has both addresses and paths of this machine: make one list of each", name));
  return count != 0;
}

// Asks the server of the list for each file: which are there, how large, and which ones (ETag).
void look_at_files(InputList& list, const std::string& name) {
  const std::string root = list.root.string();
  if (root.find('/', root.find("://") + 3) == std::string::npos)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the list {} names files of several servers or buckets: make one list of each", name));
  list.server = std::make_shared<const RemoteFiles>(root);
  std::vector<std::optional<std::string>> problems(list.inputs.size());
  parallel_for(kLooksAtOnce, list.inputs.size(), [&](unsigned, std::uint64_t i) {
    Input& input = list.inputs[i];
    try {
      if (!root.starts_with("s3:") && !root.starts_with("hf:"))
        static_cast<void>(checked_url(root + input.path));
      const RemoteFiles::State state = list.server->look(input.path);
      input.size_bytes = state.size_bytes;
      input.stamp = state.stamp;
    } catch (const UnreadableInput& error) {
      problems[i] = error.what();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      problems[i] = error.what();
    }
  });
  std::vector<Input> kept;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (problems[i])
      list.rejects.push_back({list.inputs[i].key(), escape_key(*problems[i])});
    else
      kept.push_back(std::move(list.inputs[i]));
  }
  list.inputs = std::move(kept);
}

}  // namespace

bool names_list(const std::string& images) { return images == "-" || images.starts_with("@"); }

InputList scan_list(const ScanOptions& options) {
  InputList list;
  const bool standard_input = options.images == "-";
  const std::string name = standard_input ? "on standard input" : quoted(options.images.substr(1));
  std::vector<std::string> paths =
      standard_input ? read_paths(std::cin, name) : read_list_file(options.images.substr(1), name);
  skip_paths(paths, list.skipped, reason_of_file);
  if (paths.empty()) return list;

  const bool root_given = !options.root.empty();
  const bool remote = has_addresses(paths, name);
  std::string root = plain_path(options.root.string());
  if (root_given && remote != is_remote(root))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the list {} has {}, and `root` is {}", name,
                            remote ? "addresses" : "paths of this machine", quoted(root)));
  if (!root_given) {
    const std::size_t common = common_folder(paths).size();
    skip_paths(paths, list.skipped,
               [&](const std::string& path) { return skip_by_path(path.substr(common)); });
    if (paths.empty()) return list;
    root = obvious_root(paths, name);
  }
  if (!root.empty() && root.back() != '/') root += '/';
  if (root == "./") root.clear();
  list.root = root;
  const std::string absolute_root = remote ? root : absolute_path(root.empty() ? "./" : root);
  for (const std::string& path : paths) {
    std::optional<std::string> key = key_below(path, root, absolute_root);
    if (!key)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} in {} is not below `root` {}", quoted(path), name, quoted(root)));
    if (const auto reason = skip_by_path(*key))
      list.skipped.push_back({escape_key(*key), *reason});
    else
      list.inputs.push_back({std::move(*key)});
  }
  std::sort(list.inputs.begin(), list.inputs.end(),
            [](const Input& a, const Input& b) { return a.path < b.path; });
  if (remote) look_at_files(list, name);
  take_classes(list, name, root_given);
  return list;
}

}  // namespace shard::convert
