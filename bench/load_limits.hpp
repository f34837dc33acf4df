// What can carry the bytes at best: what the loader's rates are held against, measured in the same process.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shard/loader/loader.hpp"

namespace shard::bench {

// Bytes per second of pinned memory to the devices, all at once, in blocks of 256 MiB, 4 GiB to each: the
// links and nothing else.
double link_limit(std::span<const std::shared_ptr<Device>> devices);

// Bytes per second of a bare gather: samples in the order of the loader, from the mapping into a ring of as
// many batches, by the device's own threads. Of codecs with frames the stored frames are copied, and count as
// the samples they are.
double gather_limit(const Dataset& dataset, Device& device, const LoaderOptions& options);

// Bytes per second of the disk under the shards, past the page cache (O_DIRECT), 2 GiB a call, by plain
// threads: in sequence by blocks of 1 MiB, or at random places by blocks of one sample (in whole sectors),
// which is what a shuffled order asks for. The reads go to 192 MiB of memory in turn, as into a loader's
// ring: a buffer that stays in the cache flatters a virtual disk, which copies. The number of threads (8, 32
// or 128) that gives most is found by the first call of each. 0: the filesystem has no O_DIRECT.
class DiskLimit {
 public:
  explicit DiskLimit(const Dataset& dataset);
  double sequential();
  double random();

 private:
  struct Pattern {
    std::uint64_t block_bytes = 0;
    bool random = false;
    unsigned threads = 0;
  };
  double measure(Pattern& pattern);
  double pass(const Pattern& pattern, unsigned threads);

  std::vector<std::string> files_;
  std::vector<std::uint64_t> sizes_;
  Pattern sequential_;
  Pattern random_;
  std::uint64_t at_ = 0;  // blocks read before: a later pass reads on, not the same again
};

}  // namespace shard::bench
