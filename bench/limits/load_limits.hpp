// What can carry the bytes at best: what the loader's rates are compared with, measured in the same process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "limits/raw_disk.hpp"
#include "shard/loader/loader.hpp"

namespace shard::bench {

// Bytes per second of pinned memory to the devices, all at once, in blocks of 256 MiB, 4 GiB to each: the
// links and nothing else.
double link_limit(std::span<const std::shared_ptr<Device>> devices);

// Bytes per second of a bare gather: samples in the order of the loader, from the mapping into a ring of as
// many batches, by the device's own threads. Of codecs with frames the stored frames are copied, and count as
// the samples they are.
double gather_limit(const Dataset& dataset, Device& device, const LoaderOptions& options);

// Bytes per second of the disk under the shards: RawDisk, a pass at a time. 0: the filesystem has no O_DIRECT,
// or no shard has 4 MiB.
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
  static std::string words(const RawDisk::Pattern& pattern);
  RawDisk::Pattern loader_;
  RawDisk::Pattern fastest_;
  std::optional<RawDisk> disk_;
};

}  // namespace shard::bench
