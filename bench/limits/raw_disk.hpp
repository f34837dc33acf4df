// The disk under files: read past the page cache (O_DIRECT), and nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

namespace shard::bench {

class RawDisk {
 public:
  struct Pattern {
    std::uint64_t block_bytes = 0;
    bool random = false;
    bool uring = false;
    unsigned depth = 0;  // requests of io_uring, or threads
  };
  // Files of less than `least_bytes` are left out, as are those that cannot be seen.
  RawDisk(std::span<const std::filesystem::path> files, std::uint64_t least_bytes);
  // Bytes per second, over `seconds`, or where that is 0 over every block once, but at most 2 GiB. The reads go
  // to 192 MiB of memory in turn, as into a loader's ring: a buffer that stays in the cache flatters a virtual
  // disk, which copies. A later call reads on, not the same again. 0: the filesystem has no O_DIRECT, or there
  // is no block of that size.
  double rate(const Pattern& pattern, double seconds = 0);

 private:
  std::vector<std::pair<std::filesystem::path, std::uint64_t>> files_;  // with their sizes
  std::uint64_t at_ = 0;                                                // blocks read before
};

// By blocks of 1 MiB in sequence, on as many threads of 4, 16 and 64 as give most, `seconds` each.
double raw_rate(std::span<const std::filesystem::path> files, double seconds);

}  // namespace shard::bench
