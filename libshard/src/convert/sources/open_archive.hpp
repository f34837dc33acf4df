// A file that holds many inputs: while it is listed, and longer where it could not be
// opened again as cheaply.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/unique_handle.hpp"
#include "convert/sources/remote_input.hpp"
#include "shard/error.hpp"

namespace shard::convert {

// When a file was last written or changed, and its size, mixed; never 0. Programs that write to a file in
// place may set its time of modification back, but not that of the change, which a rename moves too. Inodes
// are not in it: FAT and mounted object stores give a file another one each time that it is looked up.
std::uint64_t file_stamp(int fd);
// What to say of a file with another stamp than the one that was listed.
inline constexpr const char* kOtherStamp =
    "was replaced or written to since this run started (its times are others; links and permissions count)";
std::uint64_t file_stamp(const struct stat& info) noexcept;

class OpenArchive {
 public:
  // A path, or an address. Errors: not_found, io, invalid_argument (not a regular file), naming the path;
  // those of HttpClient.
  explicit OpenArchive(const std::filesystem::path& path);
  // A file that is open. `path` is for messages.
  OpenArchive(std::filesystem::path path, UniqueFd fd, std::uint64_t size_bytes) noexcept
      : path_(std::move(path)), fd_(std::move(fd)), size_(size_bytes) {}
  int fd() const noexcept { return fd_.get(); }
  bool is_remote() const noexcept { return remote_ != nullptr; }
  // Of this file: changes if the file is replaced or written to. 0: a server that does not tell.
  std::uint64_t stamp() const;
  std::uint64_t size() const noexcept { return size_; }
  // Returns how many bytes there were. Thread safe. Errors: io; those of RemoteArchive.
  std::size_t read(std::uint64_t offset, std::span<std::byte> out) const;
  // Of one on a server: `size_bytes` inside of it, into `out`, which grows with what was received.
  // Errors: those of RemoteArchive.
  void read_into(std::vector<std::byte>& out, std::uint64_t offset, std::uint64_t size_bytes,
                 const std::stop_token& stop = {}) const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  std::unique_ptr<const RemoteArchive> remote_;  // null: fd_
  std::uint64_t size_ = 0;
};

}  // namespace shard::convert
