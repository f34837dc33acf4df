// A file that holds many inputs, while it is listed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

#include "base/unique_handle.hpp"
#include "shard/error.hpp"

namespace shard::convert {

// Which file this is and when it was last written: device, inode and time of modification, mixed.
std::uint64_t file_stamp(int fd);

class OpenArchive {
 public:
  // Errors: not_found, io, invalid_argument (not a regular file), naming the path.
  explicit OpenArchive(const std::filesystem::path& path);
  // A file that is open. `path` is for messages.
  OpenArchive(std::filesystem::path path, UniqueFd fd, std::uint64_t size_bytes) noexcept
      : path_(std::move(path)), fd_(std::move(fd)), size_(size_bytes) {}
  int fd() const noexcept { return fd_.get(); }
  // Of this file: changes if the file is replaced or written to.
  std::uint64_t stamp() const;
  std::uint64_t size() const noexcept { return size_; }
  // Returns how many bytes there were. Error: io.
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
};

}  // namespace shard::convert
