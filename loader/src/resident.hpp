// Samples that stay in device memory after their first upload.
//
// One block of memory, filled in the order in which samples are first seen; nothing is ever given up, and the
// place of a sample whose upload failed is not used again. Used by the feeder thread only. A sample's bytes
// are written by the copy stream and read by work that waits for that copy.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "shard/loader/device.hpp"

namespace shard {

class ResidentSamples {
 public:
  // Room for `capacity_bytes`. Errors: resource.
  ResidentSamples(Device& device, std::uint64_t samples, std::uint64_t capacity_bytes)
      : place_(samples, kNone), block_(device.allocate_device(capacity_bytes)) {}

  // Where the sample lies, or null.
  const std::byte* find(std::uint64_t sample) const noexcept {
    return place_[sample] == kNone ? nullptr : block_->data() + place_[sample];
  }
  // A place for a sample that is not there yet; null when there is no room for it.
  std::byte* add(std::uint64_t sample, std::uint64_t size_bytes) noexcept {
    if (size_bytes > block_->size_bytes() - used_) return nullptr;
    place_[sample] = used_;
    used_ += size_bytes;
    return block_->data() + place_[sample];
  }
  // The sample did not come: it is to be brought again.
  void forget(std::uint64_t sample) noexcept { place_[sample] = kNone; }
  std::uint64_t device_bytes() const noexcept { return block_->size_bytes(); }

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::uint64_t> place_;  // by sample: where it begins
  std::unique_ptr<Block> block_;
  std::uint64_t used_ = 0;
};

}  // namespace shard
