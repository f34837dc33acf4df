// CacheLock: the lock of a cache folder. Whoever has it may count what is in the folder, take room in it,
// and give files their names.
//
// It is a lock of the kernel (flock) on the folder. On file systems that lock only what can be written to
// (NFS), it is one on the file `.shard-cache.lock`, which is removed when the lock is given back. It ends
// with its process, however that ends, and a child after fork() does not keep it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string_view>

#include "base/files/file_io.hpp"
#include "base/unique_handle.hpp"
#include "shard/error.hpp"

namespace shard {

class CacheLock {
 public:
  static constexpr std::string_view kFile = ".shard-cache.lock";

  // Waits for others, at most as long as `most`. Nothing: another process had it all that time.
  // Errors: cancelled; io (no such folder, or no locks there).
  static std::optional<CacheLock> take(const std::filesystem::path& folder,
                                       std::chrono::duration<double> most, const std::stop_token& stop);
  CacheLock(CacheLock&&) noexcept = default;
  CacheLock& operator=(CacheLock&&) = delete;
  ~CacheLock();

 private:
  CacheLock(UniqueFd fd, std::filesystem::path file) noexcept;

  UniqueFd fd_;
  std::filesystem::path file_;  // empty: the folder is locked
};

// Removes a file unless a process has locked it.
void remove_unlocked(const std::filesystem::path& path) noexcept;
// Gives the lock back, also one that a child after fork() has the descriptor of.
void unlock(int fd) noexcept;

}  // namespace shard
