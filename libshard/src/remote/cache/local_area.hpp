// LocalArea: one sparse file without a name, in which parts of remote files lie at places of their own.
//
// Blocks that were never written, or were given back, take no space. The kernel removes the file when the
// process ends, however it does. A child after fork() reads what its parent has put there, and takes places
// in an area of its own.
// It lies in TMPDIR, or /tmp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "base/unique_handle.hpp"
#include "shard/error.hpp"

namespace shard {

class LocalArea {
 public:
  // Errors: io (the folder cannot hold files).
  LocalArea();
  // Takes a place of `size_bytes` in the file, one that was released if there is one. Its bytes are zeros.
  // Returns its offset, a multiple of 1 MiB. Thread safe. Errors: io.
  std::uint64_t take(std::uint64_t size_bytes);
  // Gives a place back. Nothing once the process has forked since the area was made: the other side may still
  // read it, and the space comes back with the area. Thread safe. Errors: io (the file system cannot give
  // space back; the place is not used again).
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
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t>
      free_;  // offsets and sizes of places that were released; no two of them touch
  std::uint64_t end_ = 0;
};

}  // namespace shard
