// The delivered float for each byte of a stored u8 sample: as a table and, if that gives the same bits, as
// one fused multiplication and addition.
#pragma once

#include <array>
#include <cstdint>

#include "shard/loader/transform.hpp"
#include "shard/normalization.hpp"

namespace shard {

struct ValueMap : ValueTable {
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
