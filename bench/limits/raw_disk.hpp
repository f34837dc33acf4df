// The rate of the disk under some files, read past the page cache (O_DIRECT).
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
  // Leaves out files of less than `least_bytes`, and files that cannot be opened.
  RawDisk(std::span<const std::filesystem::path> files, std::uint64_t least_bytes);
  // Bytes per second, measured for `seconds` or, if that is 0, for every block once, but at most 2 GiB. The
  // reads go to 192 MiB of memory, one part after the other, as into a loader's ring: with a buffer that
  // stays in the cache, a virtual disk, which copies, would look too fast. A later call continues with the
  // next blocks. 0: the filesystem has no O_DIRECT, or there is no block of that size.
  double rate(const Pattern& pattern, double seconds = 0);

 private:
  std::vector<std::pair<std::filesystem::path, std::uint64_t>> files_;  // with their sizes
  std::uint64_t at_ = 0;                                                // blocks read before
};

// Reads blocks of 1 MiB in sequence on 4, 16 and 64 threads, for `seconds` each. Returns the highest rate.
double raw_rate(std::span<const std::filesystem::path> files, double seconds);

}  // namespace shard::bench
