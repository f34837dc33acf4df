// Operations whose values come from other places of the sample. Results are written to the other buffer.
#pragma once

#include <cstdint>

#include "cuda/kernels/augment/block.cuh"

namespace shard::gpu {
namespace {

__device__ void sharpen(Block& block, float rest) {
  const std::uint32_t row = static_cast<std::uint32_t>(block.width) * block.channels;
  const bool has_inner = block.height > 2 && block.width > 2;
  for (std::uint32_t i = threadIdx.x; i < block.values; i += kAugmentThreads) {
    const std::uint32_t y = i / row;
    const std::uint32_t x = i % row;
    const std::uint8_t* const p = block.now + i;
    const bool inner = has_inner && y > 0 && y + 1 < static_cast<std::uint32_t>(block.height) &&
                       x >= block.channels && x + block.channels < row;
    std::uint8_t value = *p;
    if (inner) {
      const std::ptrdiff_t c = block.channels;
      const std::ptrdiff_t r = row;
      const std::int32_t ring = p[-r - c] + p[-r] + p[-r + c] + p[-c] + p[c] + p[r - c] + p[r] + p[r + c];
      value = sharpened(value, ring, rest);
    }
    block.other[i] = value;
  }
}

__device__ void move(Block& block, const Step& instruction) {
  const bool affine = instruction.opcode == Opcode::affine;
  const float* const real = instruction.real;
  const float* const fills = real + (affine ? 6 : 8);
  for (std::uint32_t i = threadIdx.x; i < block.pixels; i += kAugmentThreads) {
    const auto y = static_cast<std::int32_t>(i / static_cast<std::uint32_t>(block.width));
    const auto x = static_cast<std::int32_t>(i % static_cast<std::uint32_t>(block.width));
    const Place place = affine ? affine_place(real, x, y, block.width, block.height)
                               : perspective_place(real, x, y, block.width, block.height);
    std::uint8_t* const out = block.other + std::size_t{i} * block.channels;
    if (instruction.whole[0] != 0)
      sample_bilinear(block.now, block.width, block.height, block.channels, place, instruction.whole[1] != 0,
                      fills, out);
    else
      sample_nearest(block.now, block.width, block.height, block.channels, place, fills, out);
  }
}

// flip_rows, quarter_turns and shift: whole pixels from somewhere else.
__device__ void rearrange(Block& block, const Step& instruction) {
  const std::int32_t* const whole = instruction.whole;
  const std::int32_t width = block.width;
  const std::int32_t height = block.height;
  for (std::uint32_t i = threadIdx.x; i < block.pixels; i += kAugmentThreads) {
    const auto y = static_cast<std::int32_t>(i / static_cast<std::uint32_t>(width));
    const auto x = static_cast<std::int32_t>(i % static_cast<std::uint32_t>(width));
    std::int32_t row = height - 1 - y;
    std::int32_t column = x;
    if (instruction.opcode == Opcode::quarter_turns) {
      row = whole[0] == 2 ? height - 1 - y : whole[0] == 1 ? x : width - 1 - x;
      column = whole[0] == 2 ? width - 1 - x : whole[0] == 1 ? width - 1 - y : y;
    } else if (instruction.opcode == Opcode::shift) {
      row = y - whole[0];
      column = x - whole[1];
      if (whole[2] != 0) {
        row = mirrored(row, height);
        column = mirrored(column, width);
      }
    }
    const bool inside = row >= 0 && row < height && column >= 0 && column < width;
    const std::uint8_t* const from = block.now + (static_cast<std::ptrdiff_t>(row) * width + column) *
                                                     static_cast<std::ptrdiff_t>(block.channels);
    std::uint8_t* const out = block.other + std::size_t{i} * block.channels;
    for (std::uint32_t c = 0; c < block.channels; ++c)
      out[c] = inside ? from[c] : cut_byte(fill_of(instruction.real, c));
  }
}

}  // namespace
}  // namespace shard::gpu
