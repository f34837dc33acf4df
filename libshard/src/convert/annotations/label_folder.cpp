#include "convert/annotations/label_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/text/quote.hpp"
#include "base/text/words.hpp"
#include "shard/error.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace fs = std::filesystem;

LabelFolder::LabelFolder(fs::path folder, std::string extension)
    : folder_(std::move(folder)), extension_(std::move(extension)) {
  list<fs::recursive_directory_iterator>(folder_);
}

const std::string* LabelFolder::find(const std::string& name) {
  if (const auto at = files_.find(name); at != files_.end()) return &at->second;
  const fs::path parent = (folder_ / name).parent_path();
  std::error_code error;
  if (!listed_.insert(parent.native()).second || !fs::is_directory(parent, error)) return nullptr;
  list<fs::directory_iterator>(parent);
  const auto at = files_.find(name);
  return at == files_.end() ? nullptr : &at->second;
}

template <class Iterator>
void LabelFolder::list(const fs::path& folder) {
  std::error_code error;
  const auto check = [&] {
    if (error)
      throw Error(ErrorCode::io,
                  fmt::format("cannot read the folder {}: {}", quoted(folder), error.message()));
  };
  Iterator at(folder, error);
  check();
  for (; at != Iterator(); at.increment(error), check()) add(at->path());
}

void LabelFolder::add(const fs::path& path) {
  listed_.insert(path.parent_path().native());
  if (ascii_lower(path.extension().native()) != extension_ || path.filename().native().starts_with('.'))
    return;
  std::string file = path.lexically_relative(folder_).native();
  const auto [at, added] = files_.emplace(file.substr(0, file.size() - extension_.size()), file);
  if (added) return;
  const auto [one, other] = std::minmax(at->second, file);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {} and {} differ only in the case of their extensions: keep one of them",
                          quoted(folder_), quoted_key(escape_key(one)), quoted_key(escape_key(other))));
}

}  // namespace shard::convert
