// MemoryFile: a file without a disk, that the library opens by its path like any other.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>

namespace shard::testing {

class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("shard-test", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("memfd_create failed");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  // Makes `bytes` the whole content.
  void assign(std::span<const std::byte> bytes) {
    resize(bytes.size());
    write(0, bytes);
  }
  void write(std::size_t offset, std::span<const std::byte> bytes) {
    if (::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("pwrite to a memory file failed");
    }
  }
  void resize(std::size_t size) {
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0)
      throw std::runtime_error("ftruncate of a memory file failed");
  }

 private:
  int fd_;
};

}  // namespace shard::testing
