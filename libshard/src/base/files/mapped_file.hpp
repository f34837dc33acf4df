// MappedFile: a regular file, or a range of one, mapped read-only and shared.
// The one place that knows Boost.Interprocess.
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
  // Maps `size_bytes` from `offset`, a multiple of the page size, on.
  // What is not inside of the file must not be read. Errors: io, resource.
  MappedFile(int fd, std::uint64_t offset, std::uint64_t size_bytes, const std::filesystem::path& path);
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const noexcept;

  // From byte `begin` of the mapping on, a multiple of page_bytes(), maps `fd` instead, from the same byte of
  // that file on. They must be inside of the file. Whoever reads meanwhile sees bytes of one or of the other
  // file. Nothing if `begin` is not inside of the mapping. Errors: io, resource.
  void replace(std::uint64_t begin, int fd, const std::filesystem::path& path);
  // The same with zeros, which take no memory. Errors: io, resource.
  void clear(std::uint64_t begin);
  static std::uint64_t page_bytes() noexcept;

 private:
  struct Region;
  std::unique_ptr<Region> region_;
};

}  // namespace shard
