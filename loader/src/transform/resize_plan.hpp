// The taps of one resized sample, laid out for the vector kernels (transform_kernels.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transform/arithmetic.hpp"

namespace shard {

// Rows: output y sees the box's rows [taps[y].first, + taps[y].count) with weights[y * max_taps + k].
struct VerticalPlan {
  std::uint32_t max_taps = 0;
  std::vector<Taps> taps;
  std::vector<std::int16_t> weights;

  void build(std::uint32_t box, std::uint32_t out);  // reuses its memory
};

// Columns of `channels` interleaved bytes (1 for a plane). Output bytes come in units of 8, one 128-bit
// vector of 16-bit products. For tap k a unit takes the bytes of one window of 16 * windows source bytes:
//
//   row + offsets[unit] + k * channels:  [ . . g b r g b . . . . . . . . . ]
//                                             \ \  \ \     shuffles: the same for all taps
//   lanes of 16 bits                       [ b0 g0 r0 ...]  each byte in its lane's upper half
//
// Outputs with fewer taps than max_taps have weights 0 at the end.
struct HorizontalPlan {
  static constexpr std::uint32_t kUnit = 8;          // output bytes
  static constexpr std::uint32_t kUnitMultiple = 8;  // units are padded to a multiple of it (weights 0)
  static constexpr std::uint8_t kNothing = 0x80;     // in a shuffle: a zero byte

  std::uint32_t channels = 1;
  std::uint32_t max_taps = 0;
  std::uint32_t windows = 0;
  std::uint32_t units = 0;
  std::size_t reach = 0;               // bytes from a row's begin that the kernel may read
  std::vector<std::uint32_t> offsets;  // [unit]
  std::vector<std::uint8_t> shuffles;  // [window][unit][16]
  std::vector<std::int16_t> weights;   // [tap][unit][8]

  void build(std::uint32_t box, std::uint32_t out, std::uint32_t channels_, bool flip);  // reuses its memory
  std::size_t row_values() const noexcept { return std::size_t{units} * kUnit; }

 private:
  std::vector<Taps> taps_;
  std::vector<std::int16_t> pixel_weights_;
};

}  // namespace shard
