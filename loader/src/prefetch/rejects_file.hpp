// RejectsFile: the CSV file that lists images which were skipped (LoaderOptions::rejects).
//
//   path,reason        each image once, whoever skips it first: all loaders, processes and runs that were
//   cat/7.jpg,...      given the file append to it, one at a time
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/unique_handle.hpp"

namespace shard {

// Not thread safe; processes exclude each other by a lock on the file.
class RejectsFile {
 public:
  // An empty path: no file, and add() does nothing. Errors: io (it cannot be made or opened), naming the
  // path.
  explicit RejectsFile(const std::filesystem::path& path);

  // `key`: as the data set has it. Errors: io; then the file is as it was.
  void add(std::string_view key, std::string_view reason);

 private:
  void read_new(std::uint64_t size);

  std::filesystem::path path_;
  UniqueFd file_;
  std::uint64_t read_bytes_ = 0;          // of whole lines
  std::unordered_set<std::string> keys_;  // as they are in the file
};

}  // namespace shard
