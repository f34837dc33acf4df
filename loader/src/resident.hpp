// Samples that stay in device memory after their first upload.
//
// One block of memory, filled in the order in which samples are first seen. Samples are never evicted, and
// the place of a sample whose upload failed is not used again. Used by the feeder thread only. The copy
// stream writes a sample, and work that reads it waits for that copy. Host memory grows with the number of
// resident samples, not with the data set.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "shard/loader/device.hpp"

namespace shard {

class ResidentSamples {
 public:
  // Room for `capacity_bytes`. Errors: resource.
  ResidentSamples(Device& device, std::uint64_t capacity_bytes)
      : block_(device.allocate_device(capacity_bytes)) {}

  // Where the sample lies, or null.
  const std::byte* find(std::uint64_t sample) const noexcept {
    const auto at = place_.find(sample);
    return at == place_.end() ? nullptr : block_->data() + at->second;
  }
  // A place for a sample that is not resident yet. Null if there is no room for it.
  std::byte* add(std::uint64_t sample, std::uint64_t size_bytes) {
    if (size_bytes > block_->size_bytes() - used_) return nullptr;
    place_[sample] = used_;
    std::byte* const place = block_->data() + used_;
    used_ += size_bytes;
    return place;
  }
  // The upload of the sample failed: it is not resident.
  void forget(std::uint64_t sample) noexcept { place_.erase(sample); }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> place_;  // by sample: its offset in the block
  std::unique_ptr<Block> block_;
  std::uint64_t used_ = 0;
};

}  // namespace shard
