// Who may work in OUT, without a lock file: the system drops each lock however its process ends.
//
//   FolderLock   flock on a descriptor of the folder. Exclusive for a conversion by one process and for
//                whatever replaces a data set; shared for the ranks of a conversion by several.
//   RankLock     a range of conversion.json (open file description lock), which no two processes with the
//   same
//                rank and world size can hold. The range begins at a place that stands for rank and world
//                size, and is 1 + process id bytes long: so the holder is known, also on another node.
//
// Where a file system has no such locks, or keeps them to one node, nothing is excluded; then the
// conversion's other rules keep finished data (docs/architecture.md, "A conversion").
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/unique_handle.hpp"

namespace shard::convert {

enum class LockResult : std::uint8_t {
  taken,
  busy,         // another process, or another conversion of this one, holds it
  unsupported,  // the file system has no such lock
  gone,         // RankLock: conversion.json was removed or replaced meanwhile
};

// Not thread safe. Releases at destruction, also when a fork has copied the descriptor.
class FolderLock {
 public:
  FolderLock() = default;
  FolderLock(FolderLock&&) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

  bool held() const noexcept { return fd_.get() >= 0 && held_; }
  // Does not wait. `alone`: exclusive. Errors: io, not_found.
  LockResult take(const std::filesystem::path& folder, bool alone);
  // After busy: the process id of one who holds it; 0 when that cannot be seen from here.
  std::int64_t holder() const noexcept { return holder_; }

 private:
  UniqueFd fd_;
  bool held_ = false;
  std::int64_t holder_ = 0;
};

class RankLock {
 public:
  // Does not wait. Errors: io.
  LockResult take(const std::filesystem::path& plan_file, std::uint32_t rank, std::uint32_t world);
  std::int64_t holder() const noexcept { return holder_; }

 private:
  UniqueFd fd_;
  std::int64_t holder_ = 0;
};

// "process 1234", or "another process" for 0.
std::string process_text(std::int64_t pid);

}  // namespace shard::convert
