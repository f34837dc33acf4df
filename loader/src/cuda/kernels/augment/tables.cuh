// Operations that map values by tables. Tables of instructions that follow each other are composed
// before they are applied.
#pragma once

#include <cstdint>

#include "cuda/kernels/augment/block.cuh"

namespace shard::gpu {
namespace {

__device__ void reset_tables(Block& block) {
  for (unsigned i = threadIdx.x; i < kMaxTables * 256; i += kAugmentThreads)
    block.shared->tables[i / 256][i % 256] = static_cast<std::uint8_t>(i % 256);
  block.pending = false;
  block.per_channel = false;
  __syncthreads();
}

// All threads call; the tables are ready.
__device__ void apply_tables(Block& block) {
  if (!block.pending) return;
  const Shared& shared = *block.shared;
  std::uint8_t* const now = block.now;
  if (!block.per_channel || block.channels == 1) {
    const std::uint8_t* const table = shared.tables[0];
    // Four values at a time, between the first and the last aligned address.
    const auto address = reinterpret_cast<std::uintptr_t>(now);
    const std::uint32_t ahead = min(static_cast<std::uint32_t>((4 - address % 4) % 4), block.values);
    const std::uint32_t words = (block.values - ahead) / 4;
    if (threadIdx.x < ahead) now[threadIdx.x] = table[now[threadIdx.x]];
    auto* const quads = reinterpret_cast<std::uint32_t*>(now + ahead);
    for (std::uint32_t i = threadIdx.x; i < words; i += kAugmentThreads) {
      const std::uint32_t v = quads[i];
      quads[i] = table[v & 255U] | static_cast<std::uint32_t>(table[(v >> 8U) & 255U]) << 8U |
                 static_cast<std::uint32_t>(table[(v >> 16U) & 255U]) << 16U |
                 static_cast<std::uint32_t>(table[v >> 24U]) << 24U;
    }
    const std::uint32_t rest = ahead + 4 * words + threadIdx.x;
    if (rest < block.values && threadIdx.x < 4) now[rest] = table[now[rest]];
  } else {
    for (std::uint32_t i = threadIdx.x; i < block.values; i += kAugmentThreads)
      now[i] = shared.tables[i % block.channels][now[i]];
  }
  __syncthreads();
  reset_tables(block);
}

// The sum of gray values: below 2^32 for up to 4096 x 4096 pixels; larger samples in parts.
__device__ std::uint64_t gray_sum(Block& block) {
  std::uint64_t all = 0;
  constexpr std::uint32_t kPart = 1U << 24U;  // of 254 each
  for (std::uint32_t begin = 0; begin < block.pixels; begin += kPart) {
    const std::uint32_t end = block.pixels - begin < kPart ? block.pixels : begin + kPart;
    std::uint32_t part = 0;
    if (block.channels == 3) {
      each_pixel(block, begin, end, [&](std::uint32_t r, std::uint32_t g, std::uint32_t b) {
        part += static_cast<std::uint32_t>(
            gray_of(static_cast<float>(r), static_cast<float>(g), static_cast<float>(b)));
      });
    } else {
      for (std::uint32_t i = begin + threadIdx.x; i < end; i += kAugmentThreads) part += block.now[i];
    }
    all += sum_of_block(block, part);
  }
  return all;
}

__device__ void count_values(Block& block) {
  Shared& shared = *block.shared;
  for (unsigned i = threadIdx.x; i < kMaxTables * 256; i += kAugmentThreads)
    shared.counts[i / 256][i % 256] = 0;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < block.values; i += kAugmentThreads) {
    const std::uint32_t channel = i % block.channels;
    if (channel < kMaxTables) atomicAdd(&shared.counts[channel][block.now[i]], 1U);
  }
  __syncthreads();
}

// A thread per channel finds the bounds; tables have few entries.
__device__ void channel_tables(Block& block, Opcode opcode) {
  Shared& shared = *block.shared;
  count_values(block);
  const std::uint32_t channels = block.channels < kMaxTables ? block.channels : kMaxTables;
  if (threadIdx.x < channels) {
    const std::uint32_t* const counts = shared.counts[threadIdx.x];
    std::uint32_t low = 0;
    std::uint32_t high = 255;
    while (low < 255 && counts[low] == 0) ++low;
    while (high > 0 && counts[high] == 0) --high;
    const std::uint32_t step = (block.pixels - counts[high]) / 255;
    std::uint32_t below = 0;
    for (std::uint32_t v = 0; v < 256; ++v) {
      shared.tables[threadIdx.x][v] = opcode == Opcode::equalize
                                          ? equalized(v, below, step)
                                          : stretched(static_cast<std::uint8_t>(v), low, high);
      below += counts[v];
    }
  }
  block.per_channel = true;
  __syncthreads();
}

__device__ void add_table(Block& block, const Step& instruction) {
  Shared& shared = *block.shared;
  const float* const real = instruction.real;
  if (instruction.opcode >= Opcode::contrast) apply_tables(block);
  float mean = 0;
  if (instruction.opcode == Opcode::contrast) mean = gray_mean(gray_sum(block), block.pixels);
  if (instruction.opcode > Opcode::contrast) {
    channel_tables(block, instruction.opcode);
  } else {
    for (unsigned i = threadIdx.x; i < kMaxTables * 256; i += kAugmentThreads) {
      std::uint8_t& entry = shared.tables[i / 256][i % 256];
      const std::uint8_t v = entry;
      if (instruction.opcode == Opcode::brightness) entry = brightness_of(v, real[0]);
      if (instruction.opcode == Opcode::posterize)
        entry = static_cast<std::uint8_t>(v & instruction.whole[0]);
      if (instruction.opcode == Opcode::solarize) entry = solarized(v, real[0]);
      if (instruction.opcode == Opcode::invert) entry = static_cast<std::uint8_t>(255 - v);
      if (instruction.opcode == Opcode::contrast)
        entry = blend(static_cast<float>(v), mean, real[0], real[1]);
    }
    __syncthreads();
  }
  block.pending = true;
}

}  // namespace
}  // namespace shard::gpu
