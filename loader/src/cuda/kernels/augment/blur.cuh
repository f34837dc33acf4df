// The gaussian blur: sums of columns first, into shared memory, then of rows. Pieces of rows that fit.
#pragma once

#include <cstdint>

#include "cuda/kernels/augment/block.cuh"

namespace shard::gpu {
namespace {

// The sums of columns for `here` rows from y0 on, whole rows in words of four values; `sums` has `margin`
// values before each row and behind it, which become the mirrored columns. Rows of `row` values, a multiple
// of 4, that are aligned.
__device__ void blur_columns(const Block& block, const Step& instruction, std::uint32_t y0,
                             std::uint32_t here, std::uint32_t row, std::uint32_t margin, float* sums) {
  const std::uint32_t channels = block.channels;
  const std::int32_t radius = instruction.whole[0] / 2;
  const std::uint32_t pitch = row + 2 * margin;
  const std::uint32_t words = row / 4;
  for (std::uint32_t i = threadIdx.x; i < here * words; i += kAugmentThreads) {
    const std::uint32_t line = i / words;
    const std::uint32_t word = i % words;
    float sum[4] = {0, 0, 0, 0};
    for (std::int32_t k = -radius; k <= radius; ++k) {
      const std::int32_t y = mirrored(static_cast<std::int32_t>(y0 + line) + k, block.height);
      const std::uint32_t four =
          reinterpret_cast<const std::uint32_t*>(block.now)[static_cast<std::uint32_t>(y) * words + word];
      const float weight = instruction.real[k < 0 ? -k : k];
#pragma unroll
      for (std::uint32_t v = 0; v < 4; ++v)
        sum[v] = sum[v] + static_cast<float>((four >> 8U * v) & 255U) * weight;
    }
    float* const to = sums + line * pitch + margin + 4 * word;
#pragma unroll
    for (std::uint32_t v = 0; v < 4; ++v) to[v] = sum[v];
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < here * 2 * margin; i += kAugmentThreads) {
    const std::uint32_t line = i / (2 * margin);
    const std::uint32_t at = i % (2 * margin);
    const std::uint32_t place = at < margin ? at : row + at;  // before the row, or behind it
    const auto outside = static_cast<std::int32_t>(place / channels) - radius;
    const auto x = static_cast<std::uint32_t>(mirrored(outside, block.width));
    sums[line * pitch + place] = sums[line * pitch + margin + x * channels + place % channels];
  }
}

// Rows of `wide` pixels: four pixels of a channel at a time, so that each sum is read once for all of them.
__device__ void blur_rows(const Block& block, const Step& instruction, const float* sums, std::uint32_t y0,
                          std::uint32_t here, std::uint32_t x0, std::uint32_t wide, std::uint32_t pitch) {
  const std::uint32_t channels = block.channels;
  const std::int32_t radius = instruction.whole[0] / 2;
  const std::uint32_t groups = (wide + 3) / 4 * channels;  // of a row
  const std::uint32_t row = static_cast<std::uint32_t>(block.width) * channels;
  for (std::uint32_t i = threadIdx.x; i < here * groups; i += kAugmentThreads) {
    const std::uint32_t line = i / groups;
    const std::uint32_t first = i % groups / channels * 4;
    const std::uint32_t channel = i % channels;
    const float* const from = sums + line * pitch + first * channels + channel;
    const std::uint32_t pixels = min(4U, wide - first);
    const std::uint32_t last =
        (pixels - 1 + 2 * static_cast<std::uint32_t>(radius)) * channels;  // that may be read
    const auto value = [&](std::uint32_t pixel) { return from[min(pixel * channels, last)]; };
    float a = value(0);
    float b = value(1);
    float c = value(2);
    float d = value(3);
    float sum[4] = {0, 0, 0, 0};
    for (std::int32_t k = -radius; k <= radius; ++k) {
      const float weight = instruction.real[k < 0 ? -k : k];
      sum[0] = sum[0] + a * weight;
      sum[1] = sum[1] + b * weight;
      sum[2] = sum[2] + c * weight;
      sum[3] = sum[3] + d * weight;
      a = b;
      b = c;
      c = d;
      d = value(static_cast<std::uint32_t>(k + radius) + 4);
    }
    std::uint8_t* const out =
        block.other + static_cast<std::size_t>(y0 + line) * row + (x0 + first) * channels + channel;
#pragma unroll
    for (std::uint32_t pixel = 0; pixel < 4; ++pixel)
      if (pixel < pixels) out[pixel * channels] = nearest_byte(sum[pixel]);
  }
}

// Of at most `most` rows of `words` words: the number with which threads of the block are least idle.
__device__ std::uint32_t rows_at_once(std::uint32_t most, std::uint32_t words) {
  std::uint32_t best = most;
  float best_share = 0;
  for (std::uint32_t rows = most; rows > 0; --rows) {
    const std::uint32_t turns = (rows * words + kAugmentThreads - 1) / kAugmentThreads;
    const float share = static_cast<float>(rows * words) / static_cast<float>(turns * kAugmentThreads);
    if (share > best_share * 1.03F) {
      best = rows;
      best_share = share;
    }
  }
  return best;
}

__device__ void blur(Block& block, const Step& instruction) {
  float* const sums = block.shared->blur;
  const std::uint32_t channels = block.channels;
  const std::int32_t radius = instruction.whole[0] / 2;
  const std::uint32_t row = static_cast<std::uint32_t>(block.width) * channels;
  const std::uint32_t margin = static_cast<std::uint32_t>(radius) * channels;
  // Pixels of a piece, and rows at a time.
  const std::uint32_t most = kBlurValues / channels - 2 * static_cast<std::uint32_t>(radius);
  const std::uint32_t piece = min(static_cast<std::uint32_t>(block.width), most);
  const std::uint32_t pitch = piece * channels + 2 * margin;
  const std::uint32_t rows = rows_at_once(kBlurValues / pitch, row / 4);
  const bool by_words = piece == static_cast<std::uint32_t>(block.width) && row % 4 == 0 &&
                        reinterpret_cast<std::uintptr_t>(block.now) % 4 == 0;
  for (std::uint32_t y0 = 0; y0 < static_cast<std::uint32_t>(block.height); y0 += rows) {
    const std::uint32_t here = min(rows, static_cast<std::uint32_t>(block.height) - y0);
    if (by_words) {
      blur_columns(block, instruction, y0, here, row, margin, sums);
      __syncthreads();
      blur_rows(block, instruction, sums, y0, here, 0, piece, pitch);
      __syncthreads();
      continue;
    }
    for (std::uint32_t x0 = 0; x0 < static_cast<std::uint32_t>(block.width); x0 += piece) {
      const std::uint32_t wide = min(piece, static_cast<std::uint32_t>(block.width) - x0);
      const std::uint32_t values = wide * channels + 2 * margin;
      for (std::uint32_t i = threadIdx.x; i < here * values; i += kAugmentThreads) {
        const std::uint32_t line = i / values;
        const std::uint32_t at = i % values;
        const std::int32_t x = mirrored(static_cast<std::int32_t>(x0 + at / channels) - radius, block.width);
        const std::uint8_t* const column =
            block.now + static_cast<std::uint32_t>(x) * channels + at % channels;
        float sum = 0;
        for (std::int32_t k = -radius; k <= radius; ++k) {
          const std::int32_t y = mirrored(static_cast<std::int32_t>(y0 + line) + k, block.height);
          const float term = static_cast<float>(column[static_cast<std::size_t>(y) * row]) *
                             instruction.real[k < 0 ? -k : k];
          sum = k == -radius ? term : sum + term;
        }
        sums[line * pitch + at] = sum;
      }
      __syncthreads();
      blur_rows(block, instruction, sums, y0, here, x0, wide, pitch);
      __syncthreads();
    }
  }
}

}  // namespace
}  // namespace shard::gpu
