// Elements of samples of 16-bit floats as float32 and back on the device, rounded once
// (transform/elements.hpp).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "transform/elements.hpp"

namespace shard::gpu {

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

template <class Call>
void with_type(DType dtype, const Call& call) {
  shard::with_type<F16Type, Bf16Type>(dtype, call);
}

}  // namespace shard::gpu
