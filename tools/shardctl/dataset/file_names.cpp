#include "shardctl/dataset/file_names.hpp"

#include <fmt/format.h>

#include <string>

#include "base/digest/checksum.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::ctl {
namespace {

namespace fs = std::filesystem;

bool has_jpeg_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string extension(name.substr(dot + 1));
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return extension == "jpg" || extension == "jpeg" || extension == "jpe" || extension == "jfif";
}

[[noreturn]] void refuse(std::string_view key, const std::string& why) {
  throw Error(ErrorCode::unsupported, fmt::format("the key {} {}", quoted_key(std::string(key)), why));
}

[[noreturn]] void refuse_second(std::string_view key, const fs::path& path) {
  refuse(key, fmt::format("leads to the file {}, as that of another sample does: export data sets that were "
                          "joined one by one, or give --format tar, which takes both",
                          quoted(path)));
}

// Two slashes lead to the same file as one.
fs::path path_of(std::string_view key) {
  const std::string name = unescape_key(key);
  bool plain =
      !name.empty() && name.front() != '/' && !name.ends_with('/') && name.find('\0') == std::string::npos;
  for (const fs::path& part : fs::path(name)) plain = plain && part != ".." && part != ".";
  if (!plain) refuse(key, "is no path inside of a folder: --format tar names such samples by their number");
  return fs::path(name).lexically_normal();
}

std::uint64_t digest_of(const fs::path& path) { return xxh3(path.native()); }

}  // namespace

void FileNames::add(std::string_view key) {
  const fs::path path = path_of(key);
  if (!keys_.insert(digest_of(path)).second) refuse_second(key, path);
  for (fs::path up = path.parent_path(); !up.empty(); up = up.parent_path())
    if (!folders_.insert(digest_of(up)).second) break;
}

fs::path FileNames::name_of(std::string_view key, bool is_input) {
  fs::path path = path_of(key);
  if (!is_input && !has_jpeg_name(path.native())) path += ".jpg";
  if (folders_.contains(digest_of(path)))
    refuse(key,
           fmt::format("leads to the file {}, which is the folder of other keys: --format tar takes both",
                       quoted(path)));
  if (!taken_.insert(digest_of(path)).second) refuse_second(key, path);
  return path;
}

}  // namespace shard::ctl
