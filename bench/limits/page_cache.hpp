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

// Files that nobody maps. Errors: io, naming the file.
CacheState cache_state(std::span<const std::filesystem::path> files);  // by mincore
// Writes back and drops (POSIX_FADV_DONTNEED) the pages of exactly these files, then looks.
CacheState drop_cache(std::span<const std::filesystem::path> files);
void warm_cache(std::span<const std::filesystem::path> files);  // reads them

bool is_memory(const std::filesystem::path& path);  // tmpfs and ramfs: the page cache is all there is

// Bytes per second past the page cache (O_DIRECT) by blocks of 1 MiB in sequence, on as many threads of 4, 16
// and 64 as give most, `seconds` each. 0: the filesystem has no O_DIRECT, or the files are smaller than a
// block.
double raw_rate(std::span<const std::filesystem::path> files, double seconds);

}  // namespace shard::bench
