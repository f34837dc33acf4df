// Samples that stay in device memory after their first upload.
//
// One block of memory, filled in the order in which samples are first seen. Samples are never evicted. A
// sample whose upload failed or was stopped keeps its place for the next attempt. Used by the feeder thread
// only. The copy stream writes a sample, and work that reads it waits for that copy. Host memory grows with
// the number of resident samples, not with the data set.
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

  // Where the sample lies, or null. A sample has always the same size, unless its file was changed: then it
  // counts as not resident.
  const std::byte* find(std::uint64_t sample, std::uint64_t size_bytes) const noexcept {
    const auto at = places_.find(sample);
    if (at == places_.end() || !at->second.filled || at->second.size_bytes != size_bytes) return nullptr;
    return block_->data() + at->second.begin;
  }
  // A place for a sample that is not resident yet; it counts as resident from now on. Null if there is no
  // room for it.
  std::byte* add(std::uint64_t sample, std::uint64_t size_bytes) {
    const auto [at, is_new] = places_.try_emplace(sample);
    Place& place = at->second;
    if (is_new) {
      place.begin = round_up(used_, alignment_);
      if (place.begin > block_->size_bytes() || size_bytes > block_->size_bytes() - place.begin) {
        places_.erase(at);
        return nullptr;
      }
      place.size_bytes = size_bytes;
      used_ = place.begin + size_bytes;
    }
    if (place.size_bytes != size_bytes) return nullptr;
    place.filled = true;
    return block_->data() + place.begin;
  }
  // The upload of the sample failed or was stopped: it is not resident.
  void forget(std::uint64_t sample) noexcept {
    if (const auto at = places_.find(sample); at != places_.end()) at->second.filled = false;
  }

 private:
  struct Place {
    std::uint64_t begin = 0;  // in the block
    std::uint64_t size_bytes = 0;
    bool filled = false;
  };

  std::unordered_map<std::uint64_t, Place> places_;  // by sample
  std::unique_ptr<Block> block_;
  std::uint64_t alignment_;
  std::uint64_t used_ = 0;
};

}  // namespace shard
