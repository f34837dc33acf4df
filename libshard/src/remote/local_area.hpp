// LocalArea: one sparse file without a name, in which parts of remote files lie at places of their own.
//
// Blocks that were never written, or were given back, take no space. The kernel removes the file when the process ends, however it does.
// It lies in TMPDIR, or /tmp.
#pragma once

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
  // Gives the space of a range back; it reads as zeros. Errors: io.
  void release(std::uint64_t offset, std::uint64_t size_bytes);

  int fd() const noexcept { return fd_.get(); }
  // Its folder, for messages.
  const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  std::filesystem::path folder_;
  UniqueFd fd_;
  std::atomic<std::uint64_t> end_{0};
};

}  // namespace shard
