// Elements of samples as float32 and back, rounded once: the host's form of cuda/kernels/elements.cuh.
#pragma once

#include <cstdint>

#include "shard/dtype.hpp"
#include "transform/augment/pixel_math.hpp"
#include "transform/targets/target_math.hpp"

namespace shard {

struct U8Type {
  using Stored = std::uint8_t;
  static float load(Stored value) noexcept { return static_cast<float>(value); }
  static Stored store(float value) noexcept { return augment::nearest_byte(value); }
};
struct U16Type {
  using Stored = std::uint16_t;
  static float load(Stored value) noexcept { return static_cast<float>(value); }
  static Stored store(float value) noexcept { return targets::nearest_u16(value); }
};
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
struct F32Type {
  using Stored = float;
  static float load(Stored value) noexcept { return value; }
  static Stored store(float value) noexcept { return value; }
};

// Calls `call(U8Type())` or that of another dtype of pixels.
template <class Call>
auto with_type(DType dtype, const Call& call) {
  switch (dtype) {
    case DType::u8:
      return call(U8Type());
    case DType::u16:
      return call(U16Type());
    case DType::f16:
      return call(F16Type());
    case DType::bf16:
      return call(Bf16Type());
    default:
      return call(F32Type());
  }
}

}  // namespace shard
