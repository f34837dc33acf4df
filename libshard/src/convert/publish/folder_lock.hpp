// Which processes may work in OUT. There is no lock file: the kernel drops these locks however a process
// ends.
//
//   FolderLock   flock on a descriptor of the folder. Exclusive for a conversion by one process and for
//                replacing a data set. Shared for the processes of a conversion by several.
//   RankLock     open file description lock on a range of conversion.json. Two processes with the same rank
//                and world size cannot both hold it. The range starts at an offset computed from rank and
//                world size, and is 1 + process id bytes long: a process that is refused can name the
//                holder, even one on another node.
//   ShardLocks   the same at offsets that stand for shards: of processes that claim shards (--claim), one
//                works at a shard.
//
// If a file system has no such locks, or if they are valid on one node only, they exclude nobody. Then the
// other rules of a conversion protect finished data (docs/cluster.md, "Two conversions to the same OUT").
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "base/unique_handle.hpp"

namespace shard::convert {

enum class LockResult : std::uint8_t {
  taken,
  busy,         // another process, or another conversion of this one, holds it
  unsupported,  // the file system has no such lock
  gone,         // RankLock: conversion.json was removed or replaced meanwhile
};

// Not thread safe. The destructor releases the lock, even if a fork has copied the descriptor.
class FolderLock {
 public:
  FolderLock() = default;
  FolderLock(FolderLock&&) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

  bool held() const noexcept { return fd_.get() >= 0 && held_; }
  // Returns at once. `alone`: an exclusive lock. Errors: io, not_found.
  LockResult try_lock(const std::filesystem::path& folder, bool alone);
  // After busy: the process id of a holder; 0 if it is not visible from here.
  std::int64_t holder() const noexcept { return holder_; }
  void unlock() noexcept;

 private:
  UniqueFd fd_;
  bool held_ = false;
  std::int64_t holder_ = 0;
};

class RankLock {
 public:
  // Returns at once. Errors: io.
  LockResult try_lock(const std::filesystem::path& plan_file, std::uint32_t rank, std::uint32_t world);
  std::int64_t holder() const noexcept { return holder_; }

 private:
  UniqueFd fd_;
  std::int64_t holder_ = 0;
};

// The shards at which this process works. Not thread safe. The destructor releases all locks.
class ShardLocks {
 public:
  // `file`: conversion.json, or dataset.json of a complete data set of which shards are made again.
  explicit ShardLocks(std::filesystem::path file) : file_(std::move(file)) {}
  ShardLocks(const ShardLocks&) = delete;
  ShardLocks& operator=(const ShardLocks&) = delete;
  ~ShardLocks();

  // Returns at once. After gone, the file may be another one at the next call. Errors: io.
  LockResult try_lock(std::uint64_t shard);
  void unlock(std::uint64_t shard) noexcept;

 private:
  std::filesystem::path file_;
  UniqueFd fd_;
};

// "process 1234", or "another process" for 0.
std::string process_text(std::int64_t pid);

}  // namespace shard::convert
