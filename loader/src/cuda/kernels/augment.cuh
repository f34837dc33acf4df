// Executes the programs of a batch (augment.hpp), one block per sample.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "shard/loader/augment.hpp"

namespace shard::gpu {

// Rows and columns of a sample, and where it begins, in samples of the launch's size.
struct OwnPixels {
  std::uint32_t height;
  std::uint32_t width;
  std::uint32_t first;
};

// Where a sample's pixels are, u8 [row, column, channel].
// Instructions that swap go back and forth between two buffers.
struct AugmentLaunch {
  const Instruction* instructions;
  const std::uint32_t* begins;  // samples + 1
  std::uint32_t samples;
  std::uint32_t channels;
  std::uint32_t height;
  std::uint32_t width;
  const OwnPixels* own;  // of each sample; null: all have this size
  // Of sample 0; those of the next one follow without gaps.
  std::uint8_t* pixels;
  std::uint8_t* other;
  std::uint8_t* copies;  // AugMix only, like sums
  float* sums;
};

// Queues the kernel. cudaGetLastError() has its errors.
void launch_augment(const AugmentLaunch& launch, cudaStream_t stream);

}  // namespace shard::gpu
