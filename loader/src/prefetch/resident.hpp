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

#include "base/bytes.hpp"
#include "shard/loader/device.hpp"

namespace shard {

class ResidentSamples {
 public:
  // Room for `capacity_bytes`. Each sample begins at a multiple of `alignment`. Errors: resource.
  ResidentSamples(Device& device, std::uint64_t capacity_bytes, std::uint64_t alignment = 1)
      : block_(device.allocate_device(capacity_bytes)), alignment_(alignment) {}

  // Where the sample lies, or null.
  const std::byte* find(std::uint64_t sample) const noexcept {
    const auto at = place_.find(sample);
    return at == place_.end() ? nullptr : block_->data() + at->second;
  }
  // A place for a sample that is not resident yet. Null if there is no room for it.
  std::byte* add(std::uint64_t sample, std::uint64_t size_bytes) {
    const std::uint64_t begin = round_up(used_, alignment_);
    if (begin > block_->size_bytes() || size_bytes > block_->size_bytes() - begin) return nullptr;
    place_[sample] = begin;
    used_ = begin + size_bytes;
    return block_->data() + begin;
  }
  // The upload of the sample failed: it is not resident.
  void forget(std::uint64_t sample) noexcept { place_.erase(sample); }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> place_;  // by sample: its offset in the block
  std::unique_ptr<Block> block_;
  std::uint64_t alignment_;
  std::uint64_t used_ = 0;
};

}  // namespace shard
