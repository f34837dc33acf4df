// Elements of samples as float32 and back, rounded once.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "transform/augment/pixel_math.hpp"
#include "transform/targets/target_math.hpp"

namespace shard::gpu {

struct U8Type {
  using Stored = std::uint8_t;
  static __device__ float load(Stored value) { return static_cast<float>(value); }
  static __device__ Stored store(float value) { return augment::nearest_byte(value); }
};
struct U16Type {
  using Stored = std::uint16_t;
  static __device__ float load(Stored value) { return static_cast<float>(value); }
  static __device__ Stored store(float value) { return targets::nearest_u16(value); }
};
struct F16Type {
  using Stored = std::uint16_t;
  static __device__ float load(Stored value) { return __half2float(__ushort_as_half(value)); }
  static __device__ Stored store(float value) { return __half_as_ushort(__float2half_rn(value)); }
};
struct Bf16Type {
  using Stored = std::uint16_t;
  static __device__ float load(Stored value) { return __bfloat162float(__ushort_as_bfloat16(value)); }
  static __device__ Stored store(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }
};
struct F32Type {
  using Stored = float;
  static __device__ float load(Stored value) { return value; }
  static __device__ Stored store(float value) { return value; }
};

}  // namespace shard::gpu
