// The page cache, file by file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace shard::bench {

struct CacheState {
  std::uint64_t pages = 0;
  std::uint64_t resident = 0;
  double share() const noexcept {
    return pages == 0 ? 0 : static_cast<double>(resident) / static_cast<double>(pages);
  }
};

// The files must not be mapped by any process. Errors: not_found, io, naming the file.
CacheState cache_state(std::span<const std::filesystem::path> files);  // by mincore
// Writes back and drops (POSIX_FADV_DONTNEED) the pages of these files only. Returns the state afterwards.
CacheState drop_cache(std::span<const std::filesystem::path> files);
void warm_cache(std::span<const std::filesystem::path> files);  // reads them

bool is_memory(const std::filesystem::path& path);  // tmpfs and ramfs: the page cache is all there is

}  // namespace shard::bench
