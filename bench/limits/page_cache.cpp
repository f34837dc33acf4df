#include "limits/page_cache.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files/file_io.hpp"
#include "base/files/mapped_file.hpp"

namespace shard::bench {
namespace fs = std::filesystem;

CacheState cache_state(std::span<const fs::path> files) {
  CacheState state;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const fs::path& path : files) {
    const UniqueFd fd = open_read(path);
    const std::uint64_t size = regular_file_size(fd.get(), path);
    if (size == 0) continue;
    const MappedFile mapped(fd.get(), size, path);
    std::vector<unsigned char> pages((size + page - 1) / page);
    // mincore() takes a pointer to mutable memory, and only looks.
    if (::mincore(const_cast<std::byte*>(mapped.bytes().data()), size, pages.data()) != 0)
      throw_errno("cannot count the cached pages of", path, errno);
    state.pages += pages.size();
    for (const unsigned char one : pages) state.resident += one & 1U;
  }
  return state;
}

CacheState drop_cache(std::span<const fs::path> files) {
  for (const fs::path& path : files) {
    const UniqueFd fd = open_read(path);
    ::fdatasync(fd.get());  // dirty pages stay; a read-only filesystem has none
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  return cache_state(files);
}

void warm_cache(std::span<const fs::path> files) {
  std::vector<std::byte> buffer(std::size_t{1} << 20U);
  for (const fs::path& path : files) {
    const UniqueFd fd = open_read(path);
    const std::uint64_t size = regular_file_size(fd.get(), path);
    for (std::uint64_t at = 0; at < size; at += buffer.size())
      pread_all(fd.get(), std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), size - at)), at,
                path);
  }
}

bool is_memory(const fs::path& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return false;
  return info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC;
}

}  // namespace shard::bench
