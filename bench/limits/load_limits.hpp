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

// Bytes per second of the disk under the shards, past the page cache (O_DIRECT), 2 GiB a call. The reads go
// to 192 MiB of memory in turn, as into a loader's ring: a buffer that stays in the cache flatters a virtual
// disk, which copies. 0: the filesystem has no O_DIRECT, or no shard has 4 MiB.
class DiskLimit {
 public:
  DiskLimit(const Dataset& dataset, const LoaderOptions& options);
  // Read as transport direct reads it: the same queue with as many requests, blocks that hold a sample, at
  // random places.
  double as_loader();
  std::string as_loader_is() const { return words(loader_); }
  // As fast as it was seen: the first call tries deep sequential reads of several kinds, and the loader's
  // way, and keeps the one that gives most.
  double fastest();
  std::string fastest_is() const { return words(fastest_); }  // after fastest()

 private:
  struct Pattern {
    std::uint64_t block_bytes = 0;
    bool random = false;
    bool uring = false;
    unsigned depth = 0;  // requests of io_uring, or threads
  };
  static std::string words(const Pattern& pattern);
  double pass(const Pattern& pattern);

  std::vector<std::string> files_;
  std::vector<std::uint64_t> sizes_;
  Pattern loader_;
  Pattern fastest_;
  std::uint64_t at_ = 0;  // blocks read before: a later pass reads on, not the same again
};

}  // namespace shard::bench
