// Samples that stay in device memory after their first upload.
//
// One block of memory, filled in the order in which samples are first seen. Samples are never evicted. A
// sample whose upload failed or was stopped keeps its place for the next attempt. Used by the feeder thread
// only. The copy stream writes a sample, and work that reads it waits for that copy. Host memory grows with
// the number of resident samples, not with the data set.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/digest/mix64.hpp"
#include "shard/loader/device.hpp"

namespace shard {

class ResidentSamples {
 public:
  // Room for `capacity_bytes`. Each sample begins at a multiple of `alignment`. Errors: resource.
  ResidentSamples(Device& device, std::uint64_t capacity_bytes, std::uint64_t alignment = 1)
      : block_(device.allocate_device(capacity_bytes)),
        memory_(block_->data()),
        alignment_(alignment),
        places_(kFewest) {}

  // find() or add() of this sample comes soon.
  void expect(std::uint64_t sample) const noexcept { __builtin_prefetch(&places_[wish_of(sample)]); }
  // Where the sample lies, or null. A sample has always the same size, unless its file was changed: then it
  // counts as not resident. `sample` < 2^64 - 1, `size_bytes` < 2^63.
  const std::byte* find(std::uint64_t sample, std::uint64_t size_bytes) const noexcept {
    const Place& place = places_[index_of(sample)];
    return place.sample == sample && place.size == size_bytes ? memory_ + place.begin : nullptr;
  }
  // A place for a sample that is not resident yet; it counts as resident from now on. Null if there is no
  // room for it.
  std::byte* add(std::uint64_t sample, std::uint64_t size_bytes) {
    Place* place = &places_[index_of(sample)];
    if (place->sample != sample) {
      const std::uint64_t begin = round_up(used_, alignment_);
      if (begin > block_->size_bytes() || size_bytes > block_->size_bytes() - begin) return nullptr;
      if (4 * (count_ + 1) > 3 * places_.size()) {
        grow();
        place = &places_[index_of(sample)];
      }
      *place = {sample, begin, ~size_bytes};
      ++count_;
      used_ = begin + size_bytes;
    }
    if (place->size == ~size_bytes) place->size = size_bytes;
    return place->size == size_bytes ? memory_ + place->begin : nullptr;
  }
  // The upload of the sample failed or was stopped: it is not resident.
  void forget(std::uint64_t sample) noexcept {
    Place& place = places_[index_of(sample)];
    if (place.sample == sample && place.size >> 63U == 0) place.size = ~place.size;
  }

 private:
  static constexpr std::size_t kFewest = 1024;
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  struct Place {
    std::uint64_t sample = kNone;
    std::uint64_t begin = 0;  // in the block
    std::uint64_t size = 0;   // in bytes; all bits inverted: the sample is not there (yet)
  };

  std::size_t wish_of(std::uint64_t sample) const noexcept { return mix64(sample) & (places_.size() - 1); }
  // Of the sample's place, or of the free one that it would get.
  std::size_t index_of(std::uint64_t sample) const noexcept {
    std::size_t index = wish_of(sample);
    while (places_[index].sample != sample && places_[index].sample != kNone)
      index = (index + 1) & (places_.size() - 1);
    return index;
  }
  void grow() {
    std::vector<Place> before(2 * places_.size());
    before.swap(places_);
    for (const Place& place : before)
      if (place.sample != kNone) places_[index_of(place.sample)] = place;
  }

  std::unique_ptr<Block> block_;
  std::byte* memory_;
  std::uint64_t alignment_;
  std::uint64_t used_ = 0;
  // A hash table with linear probing, of which at most three quarters are used: one access to memory for a
  // sample, where a map of nodes has three (which took 40 of the 92 ns that the
  // feeder needed for a resident sample).
  std::vector<Place> places_;
  std::uint64_t count_ = 0;
};

}  // namespace shard
