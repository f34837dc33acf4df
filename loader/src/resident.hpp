// Samples that stay in device memory after their first upload.
//
// A fixed block of so many samples, filled in the order in which samples are first seen; nothing is ever
// given up, and the place of a sample whose upload failed is not used again. Used by the feeder thread only.
// A sample's bytes are written by the copy stream and read by work that waits for that copy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "shard/loader/device.hpp"

namespace shard {

class ResidentSamples {
 public:
  // Room for min(samples, budget / sample bytes) samples. Errors: resource.
  ResidentSamples(Device& device, std::uint64_t samples, std::uint64_t sample_bytes,
                  std::uint64_t budget_bytes)
      : sample_bytes_(sample_bytes), place_(samples, kNone) {
    capacity_ =
        static_cast<std::uint32_t>(std::min<std::uint64_t>({samples, budget_bytes / sample_bytes, kNone}));
    if (capacity_ > 0) block_ = device.allocate_device(capacity_ * sample_bytes);
  }

  // Where the sample lies, or null.
  const std::byte* find(std::uint64_t sample) const noexcept {
    return place_[sample] == kNone ? nullptr : block_->data() + place_[sample] * sample_bytes_;
  }
  // A place for a sample that is not there yet; null when the block is full.
  std::byte* add(std::uint64_t sample) noexcept {
    if (used_ == capacity_) return nullptr;
    place_[sample] = used_++;
    return block_->data() + place_[sample] * sample_bytes_;
  }
  // The sample did not come: it is to be brought again.
  void forget(std::uint64_t sample) noexcept { place_[sample] = kNone; }
  std::uint64_t device_bytes() const noexcept { return capacity_ * sample_bytes_; }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t sample_bytes_;
  std::vector<std::uint32_t> place_;  // by sample
  std::uint32_t capacity_ = 0;
  std::uint32_t used_ = 0;
  std::unique_ptr<Block> block_;
};

}  // namespace shard
