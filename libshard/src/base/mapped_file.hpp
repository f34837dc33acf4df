// MappedFile: a regular file, or a range of one, mapped read-only and shared. The one place that knows Boost.Interprocess.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace shard {

class MappedFile {
 public:
  // Maps `size_bytes`, at least 1, of the open file `fd`. Checks before and after that the file has this
  // size. `path` is for messages. Errors: io, resource (no address space).
  MappedFile(int fd, std::uint64_t size_bytes, const std::filesystem::path& path);
  // Maps `size_bytes` from `offset`, a multiple of the page size, on. They must be inside of the file. Errors: io, resource.
  MappedFile(int fd, std::uint64_t offset, std::uint64_t size_bytes, const std::filesystem::path& path);
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept;

  // Maps as many bytes of `fd`, from `offset` on, at the same address. They must be inside of the file. Whoever reads meanwhile sees bytes of one or of the
  // other file. Errors: io, resource.
  void replace(int fd, std::uint64_t offset, const std::filesystem::path& path);

 private:
  struct Region;
  std::unique_ptr<Region> region_;
};

}  // namespace shard
