// The accurate integer inverse DCT ("islow") of one block, bit for bit as libjpeg-turbo computes it by
// default on x86-64, for any coefficients.
//
// Coefficients that an encoder writes give the same samples on all paths of the library. Extreme ones do not:
// its C code calculates with 32 or 64 bits and looks the result up modulo 1024, its SIMD code as follows.
// SIMD is the default, so it is the definition (AVX2 and SSE2 agree):
//
//   coefficient * quantisation value      the lower 16 bits
//   sums of two inputs of a pass          the lower 16 bits, with a sign
//   products and their sums               the lower 32 bits
//   results of the first pass             rounded, cut to 16 bits with a sign (saturation)
//   columns whose rows 1 to 7 are all 0   the lower 16 bits of 4 * value: no saturation
//   samples                               rounded, cut to -128 to 127, plus 128
//
// Source of the algorithm: C. Loeffler, A. Ligtenberg, G. Moschytz, "Practical fast 1-D DCT algorithms with
// 11 multiplications", ICASSP 1989, as in libjpeg's jidctint.c.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/layout.hpp"

namespace shard::jpeg {

// The lower 16 bits with a sign.
SHARD_EXACT constexpr std::int32_t low16(std::int32_t value) noexcept {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(value));
}

SHARD_EXACT constexpr std::int32_t cut16(std::int32_t value) noexcept {
  return value < -32768 ? -32768 : value > 32767 ? 32767 : value;
}

SHARD_EXACT constexpr std::uint8_t sample_of(std::int32_t value) noexcept {
  return static_cast<std::uint8_t>((value < -128 ? -128 : value > 127 ? 127 : value) + 128);
}

inline constexpr std::uint32_t kFirstPassShift = 11;   // 13 - 2: two more bits for the second pass
inline constexpr std::uint32_t kSecondPassShift = 18;  // 13 + 2 + 3

// One pass over 8 values of 16 bits. `kShift`: the bits that the results lose. In place.
template <std::uint32_t kShift>
SHARD_EXACT constexpr void inverse_dct_pass(std::int32_t* in, std::uint32_t stride) noexcept {
  // sqrt(2) * cos and sin of multiples of pi / 16, 13 bits below the point, combined so that no sum of inputs
  // is multiplied but z3 and z4.
  const std::int32_t in1 = in[1 * stride];
  const std::int32_t in2 = in[2 * stride];
  const std::int32_t in3 = in[3 * stride];
  const std::int32_t in5 = in[5 * stride];
  const std::int32_t in6 = in[6 * stride];
  const std::int32_t in7 = in[7 * stride];
  const auto product = [](std::int32_t a, std::int32_t fa, std::int32_t b, std::int32_t fb) {
    return static_cast<std::uint32_t>(a * fa) + static_cast<std::uint32_t>(b * fb);
  };
  const auto even0 = static_cast<std::uint32_t>(low16(in[0] + in[4 * stride])) << 13;
  const auto even1 = static_cast<std::uint32_t>(low16(in[0] - in[4 * stride])) << 13;
  const std::uint32_t even2 = product(in2, 4433, in6, 4433 - 15137);
  const std::uint32_t even3 = product(in2, 4433 + 6270, in6, 4433);

  const std::int32_t sum3 = low16(in3 + in7);
  const std::int32_t sum4 = low16(in1 + in5);
  const std::uint32_t z3 = product(sum3, 9633 - 16069, sum4, 9633);
  const std::uint32_t z4 = product(sum3, 9633, sum4, 9633 - 3196);
  const std::uint32_t odd0 = product(in7, 2446 - 7373, in1, -7373) + z3;
  const std::uint32_t odd1 = product(in5, 16819 - 20995, in3, -20995) + z4;
  const std::uint32_t odd2 = product(in5, -20995, in3, 25172 - 20995) + z3;
  const std::uint32_t odd3 = product(in7, -7373, in1, 12299 - 7373) + z4;

  const auto result = [](std::uint32_t sum) {
    const std::int32_t value = static_cast<std::int32_t>(sum + (1U << (kShift - 1))) >> kShift;
    return kShift == kFirstPassShift ? cut16(value) : value;  // sample_of() cuts more
  };
  in[0 * stride] = result(even0 + even3 + odd3);
  in[7 * stride] = result(even0 + even3 - odd3);
  in[1 * stride] = result(even1 + even2 + odd2);
  in[6 * stride] = result(even1 + even2 - odd2);
  in[2 * stride] = result(even1 - even2 + odd1);
  in[5 * stride] = result(even1 - even2 - odd1);
  in[3 * stride] = result(even0 - even3 + odd0);
  in[4 * stride] = result(even0 - even3 - odd0);
}

SHARD_EXACT constexpr std::int32_t dequantize(std::int16_t coefficient, std::uint16_t quantization) noexcept {
  return low16(static_cast<std::int32_t>(static_cast<std::uint32_t>(coefficient) * quantization));
}

// `coefficients` and `quantization`: 64 each, in the order of the zigzag. -> 8 rows of 8 samples, `stride`
// apart.
SHARD_EXACT inline void inverse_dct(const std::int16_t* coefficients, const std::uint16_t* quantization,
                                    std::uint8_t* samples, std::uint32_t stride) noexcept {
  std::int32_t work[kBlockValues];
  std::int32_t below = 0;  // not 0: rows 1 to 7 are not all 0
  SHARD_UNROLL
  for (std::uint32_t k = 0; k < kBlockValues; ++k) {
    work[natural_order(k)] = dequantize(coefficients[k], quantization[k]);
    if (natural_order(k) >= kBlockSide) below |= coefficients[k];
  }
  if (below != 0) {
    SHARD_UNROLL
    for (std::uint32_t x = 0; x < kBlockSide; ++x) inverse_dct_pass<kFirstPassShift>(work + x, kBlockSide);
  } else {
    SHARD_UNROLL
    for (std::uint32_t i = kBlockValues; i > 0; --i) work[i - 1] = low16(work[(i - 1) % kBlockSide] * 4);
  }
  SHARD_UNROLL
  for (std::uint32_t y = 0; y < kBlockSide; ++y) {
    inverse_dct_pass<kSecondPassShift>(work + y * kBlockSide, 1);
    SHARD_UNROLL
    for (std::uint32_t x = 0; x < kBlockSide; ++x)
      samples[std::size_t{y} * stride + x] = sample_of(work[y * kBlockSide + x]);
  }
}

}  // namespace shard::jpeg
