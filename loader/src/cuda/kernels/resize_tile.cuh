// What the kernels that resize have in common: how large the parts are that a block makes, and how many
// stored pixels an output sees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "shard/loader/transform.hpp"

namespace shard::gpu {

inline constexpr std::uint32_t kMaxTile = 64;           // output columns
inline constexpr std::uint32_t kBandRows = 32;          // output rows
inline constexpr std::size_t kSharedBytes = 48 * 1024;  // available on every device without a special call

// What one of `out` pixels sees of a box, at most.
__host__ __device__ inline std::uint32_t most_taps(std::uint32_t box, std::uint32_t out) {
  return box > out ? (2 * box + out - 1) / out : 2;
}

struct LargestBox {
  std::uint32_t width = 1;
  std::uint32_t height = 1;

  explicit LargestBox(const TransformWork& work) {
    for (const SampleCrop& crop : work.crops) {
      width = std::max(width, crop.width);
      height = std::max(height, crop.height);
    }
  }
};

}  // namespace shard::gpu
