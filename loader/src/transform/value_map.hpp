// What a delivered float is for each byte of a stored u8 sample: (byte / 255 - mean) / std, each step rounded
// to float32, then rounded once to the delivered type.
#pragma once

#include <array>
#include <cstdint>

#include "shard/loader/transform.hpp"

namespace shard {

struct ValueMap {
  using Table = std::array<std::uint32_t, 256>;

  DType dtype = DType::f32;  // f16, bf16 or f32
  // Bit patterns by channel and byte, in the low half for 16-bit types. A fourth channel has mean 0 and
  // std 1.
  std::array<Table, 4> bits{};
  // Of the arithmetic above.
  std::array<float, 4> mean{};
  std::array<float, 4> std{};
  // Where `fused` is set, rounding fma(byte, scale, bias) gives the table's bits for every byte of every
  // channel.
  bool fused = false;
  std::array<float, 4> scale{};
  std::array<float, 4> bias{};
};

// `channels` 1 to 4. Pure; takes some ten microseconds.
ValueMap make_value_map(DType dtype, const Normalization& normalization, std::uint32_t channels);
// Of a work whose stored samples are u8 and delivered ones floats; without `normalize` mean is 0 and std 1.
ValueMap make_value_map(const TransformWork& work);
// The same, kept by the calling thread until it asks for another one.
const ValueMap& cached_value_map(const TransformWork& work);

}  // namespace shard
