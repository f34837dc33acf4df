// OpenFolder: a staging folder, or the log in it, as it was when it was opened.
//
// Where locks exclude nobody, another process may finish what was staged, and put files of its own into a new
// folder of the same name. By path, they would be moved as if they were ours.
#pragma once

#include <filesystem>

#include "base/unique_handle.hpp"

namespace shard::convert {

class OpenFolder {
 public:
  explicit OpenFolder(const std::filesystem::path& path);
  bool is_there() const noexcept { return static_cast<bool>(fd_); }
  // Whether `path` is this folder.
  bool is_at(const std::filesystem::path& path) const noexcept;
  // False: there is no such file in the folder. Errors: io.
  bool move(const std::filesystem::path& name, const std::filesystem::path& to) const;

 private:
  UniqueFd fd_;
};

// Throws resource: what was staged is not there any more.
[[noreturn]] void refuse_changed(const std::filesystem::path& out);

}  // namespace shard::convert
