// Looks up the sizes of files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_handle.hpp"

namespace shard::convert {

// Of files below one folder. Quick for those of one folder after each other: it is kept open, so the system
// need not follow the path to it for each of them. Not thread safe.
class FileSizes {
 public:
  explicit FileSizes(std::filesystem::path root) : root_(std::move(root)) {}
  struct State {
    std::uint64_t size_bytes = 0;
    std::uint64_t stamp = 0;  // file_stamp()
  };
  // Of the file root / path. Nothing: it cannot be looked at, or is not a regular file.
  std::optional<State> state_of(const std::string& path);

 private:
  std::filesystem::path root_;
  std::string folder_;  // of the file before, with a trailing '/'
  bool any_ = false;    // there was one
  UniqueFd fd_;         // of `folder_`, after its second file
};

}  // namespace shard::convert
