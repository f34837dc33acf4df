// The memory in which a GPU executes the programs of a batch:
//
//   [ pixels: one buffer per sample ][ the other buffers ][ AugMix: copies ][ AugMix: sums, float32 ]
#pragma once

#include <cstdint>

#include "shard/dataset_spec.hpp"

namespace shard::augment {

struct ScratchShape {
  // From sample to sample, in values: the transform reads and writes samples without gaps.
  std::uint64_t pitch = 0;
  // Of the second buffers, the copies and the sums; the first buffers begin at 0.
  std::uint64_t other = 0;
  std::uint64_t copies = 0;
  std::uint64_t sums = 0;
  std::uint64_t size_bytes = 0;

  ScratchShape(const SampleSpec& delivered, std::uint64_t samples, bool with_mix) noexcept
      : pitch(delivered.elements()),
        other((pitch * samples + 255) / 256 * 256),
        copies(2 * other),
        sums(3 * other),
        size_bytes(with_mix ? 7 * other : 2 * other) {}
};

}  // namespace shard::augment
