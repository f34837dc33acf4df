// LocalArea: one sparse file without a name, in which parts of remote files lie at places of their own.
//
// Blocks that were never written, or were given back, take no space. The kernel removes the file when the process ends, however it does.
// A child after fork() reads what its parent has put there, and takes places in an area of its own.
// It lies in TMPDIR, or /tmp.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/unique_handle.hpp"
#include "shard/error.hpp"

namespace shard {

class LocalArea {
 public:
  // Errors: io (the folder cannot hold files).
  LocalArea();
  // Takes the next `size_bytes` of the file. Returns their offset, a multiple of 1 MiB. Thread safe. Errors: io.
  std::uint64_t take(std::uint64_t size_bytes);
  // Gives the space of a range back; it reads as zeros. Nothing once the process has forked since the area was made: the other side may still read it, and
  // the space comes back with the area. Errors: io.
  void release(std::uint64_t offset, std::uint64_t size_bytes);

  // False in a child after fork().
  bool of_this_process() const noexcept;
  int fd() const noexcept { return fd_.get(); }
  // Its folder, for messages.
  const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  std::filesystem::path folder_;
  UniqueFd fd_;
  pid_t pid_;
  std::uint64_t forks_;  // of this process before the area was made
  std::atomic<std::uint64_t> end_{0};
};

}  // namespace shard
