// The arithmetic of the transform, shared by host and CUDA: integers only, so both give the same bits.
//
// Resizing is Pillow's antialiased triangle filter ("bilinear") over a box, as torchvision's resized_crop
// uses it, with 14-bit weights; between the two passes values keep 7 bits below the byte, where Pillow rounds
// to bytes. Results differ from Pillow's by one level at most: half a level by Pillow's rounding between the
// passes, and some hundredths by the weights and terms.
//
//   output x of `out` sees the stored pixels i of `box` whose centre lies nearer than one support to its own
//   centre:
//   |(i + 1/2) - (x + 1/2) box / out| < max(box / out, 1), with a weight that falls linearly with the
//   distance. All distances are counted in units of 1 / (2 out), where they are integers.
//
//   value = pixel << 7
//   term = (value * weight + 2^14) >> 15    one tap: the 16-bit multiply with rounding that CPUs have
//   value = sum of terms << 1               columns first,
//   byte = min((sum + 32) >> 6, 255)        then rows
//
// Bounds: box <= 65535, out <= 8192, box <= 32 out: everything fits 32 bits.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define SHARD_HOST_DEVICE __host__ __device__
#else
#define SHARD_HOST_DEVICE
#endif

namespace shard {

inline constexpr std::uint32_t kMaxShrink = 32;            // box / out
inline constexpr std::uint32_t kMaxResized = 8192;         // delivered rows or columns
inline constexpr std::uint32_t kMaxTaps = 2 * kMaxShrink;  // stored pixels that one output sees
inline constexpr std::uint32_t kWeightOne = 1U << 14U;     // the weights of an output sum to it

// Stored pixels [first, first + count) of a box; 1 <= count <= kMaxTaps.
struct Taps {
  std::uint32_t first;
  std::uint32_t count;
};

SHARD_HOST_DEVICE constexpr std::int32_t tap_support(std::int32_t box, std::int32_t out) noexcept {
  return 2 * (box > out ? box : out);
}

SHARD_HOST_DEVICE constexpr Taps taps_of(std::int32_t box, std::int32_t out, std::int32_t x) noexcept {
  const std::int32_t center = (2 * x + 1) * box;
  const std::int32_t low = center - tap_support(box, out);  // exclusive
  const std::int32_t high = center + tap_support(box, out);
  const std::int32_t first = low < 0 ? 0 : (low / out + 1) / 2;
  const std::int32_t end = (high + out - 1) / out / 2;
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>((end < box ? end : box) - first)};
}

// Before normalisation; 1 to 131,070.
SHARD_HOST_DEVICE constexpr std::uint32_t tap_height(std::int32_t box, std::int32_t out, std::int32_t x,
                                                     std::int32_t i) noexcept {
  const std::int32_t away = (2 * i + 1) * out - (2 * x + 1) * box;
  return static_cast<std::uint32_t>(tap_support(box, out) - (away < 0 ? -away : away));
}

// weights[k * stride], k < taps.count: rounded to 14 bits; what is missing to kWeightOne goes to the (first)
// largest.
SHARD_HOST_DEVICE constexpr void tap_weights(std::int32_t box, std::int32_t out, std::int32_t x, Taps taps,
                                             std::int16_t* weights, std::uint32_t stride) noexcept {
  const auto first = static_cast<std::int32_t>(taps.first);
  std::uint32_t total = 0;
  std::uint32_t highest = 0;
  std::uint32_t largest = 0;
  for (std::uint32_t k = 0; k < taps.count; ++k) {
    const std::uint32_t height = tap_height(box, out, x, first + static_cast<std::int32_t>(k));
    total += height;
    if (height > highest) {
      highest = height;
      largest = k;
    }
  }
  std::uint32_t missing = kWeightOne;  // modulo 2^32
  for (std::uint32_t k = 0; k < taps.count; ++k) {
    const std::uint32_t height = tap_height(box, out, x, first + static_cast<std::int32_t>(k));
    const std::uint32_t weight = (height * kWeightOne + total / 2) / total;
    missing -= weight;
    weights[k * stride] = static_cast<std::int16_t>(weight);
  }
  weights[largest * stride] =
      static_cast<std::int16_t>(static_cast<std::uint32_t>(weights[largest * stride]) + missing);
}

SHARD_HOST_DEVICE constexpr std::int16_t tap_value(std::uint8_t pixel) noexcept {
  return static_cast<std::int16_t>(pixel << 7);
}
SHARD_HOST_DEVICE constexpr std::int32_t tap_term(std::int16_t value, std::int16_t weight) noexcept {
  return (std::int32_t{value} * weight + (1 << 14)) >> 15;
}
// At most 2 * (16320 + kMaxTaps / 2): it fits.
SHARD_HOST_DEVICE constexpr std::int16_t sum_to_value(std::int32_t sum) noexcept {
  return static_cast<std::int16_t>(sum << 1);
}
SHARD_HOST_DEVICE constexpr std::uint8_t sum_to_byte(std::int32_t sum) noexcept {
  const std::int32_t value = (sum + 32) >> 6;
  return static_cast<std::uint8_t>(value > 255 ? 255 : value);
}

}  // namespace shard
