// The arithmetic of the transform for samples stored as floats, shared by host and CUDA; also for u16, and
// for all samples of more than four channels.
//
// A stored value of any type is a float32 exactly. Everything is computed in float32, one rounded operation
// after the other (to nearest, ties to even; no fused steps), in the order that is written here, and rounded
// once to the delivered type. So host and CUDA give the same bits.
//
//   resize     weight of a tap = float(its height) / float(sum of the heights), the heights of arithmetic.hpp
//              sum = value * weight of the first tap, then sum = sum + value * weight for each further one,
//              left to right; columns first, then rows, top to bottom. Nothing is rounded to the stored type
//              in between.
//   scale      u8 and u16 that become floats: value / 255, value / 65535
//   normalise  (value - mean) / std
//   cast       rounded to nearest even; beyond the largest value: infinity. u8 and u16 that stay what they
//              are (resized): rounded to nearest even. Before that, a value of u16 with n terms per pass is
//              off by at most n / 128 of a unit: 0.02 where the box is not shrunk (n = 2), and in theory half
//              a unit where it is shrunk 32 times
//
// Only the taps of an output are read, so a NaN or an infinity reaches the outputs that see it and no others.
// A NaN that was computed or cast is delivered as kFloatNan*, whatever its sign and payload were.
#pragma once

#include <cstdint>

#include "transform/arithmetic.hpp"

namespace shard {

inline constexpr std::uint16_t kFloatNanF16 = 0x7E00;
inline constexpr std::uint16_t kFloatNanBf16 = 0x7FC0;
inline constexpr std::uint32_t kFloatNanF32 = 0x7FC00000;

// The sum of the heights of an output's taps: at most kMaxTaps * 131,070, exact in float32.
SHARD_HOST_DEVICE constexpr float tap_total(std::int32_t box, std::int32_t out, std::int32_t x,
                                            Taps taps) noexcept {
  std::uint32_t total = 0;
  for (std::uint32_t k = 0; k < taps.count; ++k)
    total += tap_height(box, out, x, static_cast<std::int32_t>(taps.first + k));
  return static_cast<float>(total);
}

// Greater than 0 for every tap.
SHARD_HOST_DEVICE constexpr float float_weight(std::int32_t box, std::int32_t out, std::int32_t x, Taps taps,
                                               std::uint32_t k, float total) noexcept {
  const auto at = static_cast<std::int32_t>(taps.first + k);
  return static_cast<float>(tap_height(box, out, x, at)) / total;
}

}  // namespace shard
