// SpareFiles: files without names for shards in transit, used one after the other. Their pages and blocks
// exist already when the next shard is written, which is most of what writing takes (docs/benchmarks.md,
// "Data sets on servers").
//
// All files together are never longer than those were that were in use at the same time. The kernel removes
// them when the process ends, however it does. A child after fork() makes files of its own. Thread safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/unique_handle.hpp"
#include "shard/error.hpp"

namespace shard {

class SpareFiles {
 public:
  SpareFiles();

  // A file of `size_bytes` for reading and writing, in the first of the folders whose disk has room; its
  // bytes are any. It is in use until it is given back. Nothing: there is no room. Errors: io.
  std::optional<UniqueFd> take(std::uint64_t size_bytes, std::span<const std::filesystem::path> folders);
  // Takes back a file of this size, which nobody reads any more, by a mapping neither.
  void give_back(UniqueFd fd, std::uint64_t size_bytes) noexcept;

 private:
  struct File {
    UniqueFd fd;
    std::uint64_t size_bytes = 0;
  };
  std::optional<UniqueFd> spare_of(std::uint64_t size_bytes);
  void trim();

  std::mutex mutex_;
  std::vector<File> spare_;
  std::uint64_t used_bytes_ = 0;
  std::uint64_t spare_bytes_ = 0;
  std::uint64_t most_bytes_ = 0;  // in use at the same time
  pid_t pid_;
};

}  // namespace shard
