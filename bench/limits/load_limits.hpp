// The limits with which the loader's rates are compared, measured in the same process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "limits/raw_disk.hpp"
#include "shard/loader/loader.hpp"

namespace shard::bench {

// Decoded bytes of a sample; of samples of any size, of all on average.
std::uint64_t mean_sample_bytes(const Dataset& dataset);
// Bytes of a stored image on average, with what lies between images. 0: stored without codec.
double mean_frame_bytes(const Dataset& dataset);

// Bytes per second from pinned memory to all devices at once, in blocks of 256 MiB, 4 GiB to each: the links
// alone.
double link_limit(std::span<const std::shared_ptr<Device>> devices);

// Bytes per second of a bare gather: the device's threads copy samples, in the order of the loader, from the
// mapping into a ring of as many batches. With a codec, stored frames are copied, but the bytes of the
// samples are counted.
double gather_limit(const Dataset& dataset, Device& device, const LoaderOptions& options);

// Bytes per second of the disk under the shards, by RawDisk, one pass per call. 0: the filesystem has no
// O_DIRECT, or no shard has 4 MiB.
class DiskLimit {
 public:
  DiskLimit(const Dataset& dataset, const LoaderOptions& options);
  // Reads as transport direct does: the same queue with as many requests, in blocks that contain a sample, at
  // random places.
  double as_loader();
  std::string as_loader_is() const { return words(loader_); }
  // The highest rate: the first call tries several kinds of deep sequential reads, and the way of the loader,
  // and keeps the fastest.
  double fastest();
  std::string fastest_is() const { return words(fastest_); }  // after fastest()

 private:
  static std::string words(const RawDisk::Pattern& pattern);
  RawDisk::Pattern loader_;
  RawDisk::Pattern fastest_;
  std::optional<RawDisk> disk_;
};

}  // namespace shard::bench
