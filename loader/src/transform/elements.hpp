// Elements of samples as float32 and back, rounded once.
#pragma once

#include <cstdint>

#include "shard/dtype.hpp"
#include "transform/augment/pixel_math.hpp"
#include "transform/targets/target_math.hpp"

namespace shard {

struct U8Type {
  using Stored = std::uint8_t;
  static SHARD_PIXEL float load(Stored value) noexcept { return static_cast<float>(value); }
  static SHARD_PIXEL Stored store(float value) noexcept { return augment::nearest_byte(value); }
};
struct U16Type {
  using Stored = std::uint16_t;
  static SHARD_PIXEL float load(Stored value) noexcept { return static_cast<float>(value); }
  static SHARD_PIXEL Stored store(float value) noexcept { return targets::nearest_u16(value); }
};
struct F32Type {
  using Stored = float;
  static SHARD_PIXEL float load(Stored value) noexcept { return value; }
  static SHARD_PIXEL Stored store(float value) noexcept { return value; }
};

// On the host. Those of the device are in cuda/kernels/elements.cuh.
struct F16Type {
  using Stored = std::uint16_t;
  static float load(Stored value) noexcept { return f16_to_f32(value); }
  static Stored store(float value) noexcept { return f32_to_f16(value); }
};
struct Bf16Type {
  using Stored = std::uint16_t;
  static float load(Stored value) noexcept { return bf16_to_f32(value); }
  static Stored store(float value) noexcept { return f32_to_bf16(value); }
};

// Calls `call(U8Type())`, or with the type of another dtype of pixels.
template <class F16 = F16Type, class Bf16 = Bf16Type, class Call>
auto with_type(DType dtype, const Call& call) {
  switch (dtype) {
    case DType::u8:
      return call(U8Type());
    case DType::u16:
      return call(U16Type());
    case DType::f16:
      return call(F16());
    case DType::bf16:
      return call(Bf16());
    default:
      return call(F32Type());
  }
}

}  // namespace shard
