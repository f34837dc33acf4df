// What the kernels of values in float32 share: the parameters of a launch, and how elements become floats and
// floats delivered elements (transform/float_arithmetic.hpp).
//
// Included by files that are built without contraction of floating-point expressions (see CMakeLists.txt).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/launch.cuh"
#include "transform/check_work.hpp"
#include "transform/float_arithmetic.hpp"

namespace shard::gpu {

enum class FloatType : std::uint32_t { f16, bf16, f32, u8, u16 };

struct FloatLaunch {
  Launch launch;
  FloatType stored;
  FloatType delivered;
  bool converts;  // values are computed even if the box has the delivered size
  float divisor;  // before that; 1: none
  bool normalize;
  float mean[4];  // of up to four channels
  float std[4];
};

inline FloatType float_type(DType dtype) {
  if (dtype == DType::f16) return FloatType::f16;
  if (dtype == DType::bf16) return FloatType::bf16;
  if (dtype == DType::u8) return FloatType::u8;
  return dtype == DType::u16 ? FloatType::u16 : FloatType::f32;
}

inline FloatLaunch make_float_launch(const TransformWork& work, const Launch& launch) {
  FloatLaunch floats{};
  floats.launch = launch;
  floats.stored = float_type(work.stored.dtype);
  floats.delivered = float_type(work.delivered.dtype);
  floats.converts = converts_floats(work);
  floats.divisor = scale_of(work);
  floats.normalize = work.normalize;
  for (std::size_t c = 0; c < 4; ++c) {
    floats.mean[c] = mean_of(work.normalization, c);
    floats.std[c] = std_of(work.normalization, c);
  }
  return floats;
}

__device__ inline float load_float(FloatType type, const std::uint8_t* sample, std::uint64_t element) {
  switch (type) {
    case FloatType::f16:
      return __half2float(__ushort_as_half(__ldcs(reinterpret_cast<const std::uint16_t*>(sample) + element)));
    case FloatType::bf16: {
      const std::uint32_t bits = __ldcs(reinterpret_cast<const std::uint16_t*>(sample) + element);
      return __uint_as_float(bits << 16U);
    }
    case FloatType::u8:
      return static_cast<float>(__ldcs(sample + element));
    case FloatType::u16:
      return static_cast<float>(__ldcs(reinterpret_cast<const std::uint16_t*>(sample) + element));
    case FloatType::f32:
      break;
  }
  return __ldcs(reinterpret_cast<const float*>(sample) + element);
}

__device__ inline void store_float(const FloatLaunch& floats, std::uint32_t channel, float value,
                                   std::uint64_t element) {
  if (floats.divisor != 1.0F) value = __fdiv_rn(value, floats.divisor);
  if (floats.normalize) {
    const Launch& launch = floats.launch;
    const bool many = launch.channels > 4;
    const float mean = many ? launch.normalization[channel] : floats.mean[channel];
    const float std = many ? launch.normalization[launch.channels + channel] : floats.std[channel];
    value = __fdiv_rn(__fsub_rn(value, mean), std);
  }
  const bool nan = value != value;
  std::byte* const target = floats.launch.target;
  if (floats.delivered == FloatType::u8 || floats.delivered == FloatType::u16) {
    const float most = floats.delivered == FloatType::u8 ? 255.0F : 65535.0F;
    const int whole = __float2int_rn(fminf(fmaxf(value, 0.0F), most));
    if (floats.delivered == FloatType::u8)
      __stcs(reinterpret_cast<std::uint8_t*>(target) + element, static_cast<std::uint8_t>(whole));
    else
      __stcs(reinterpret_cast<std::uint16_t*>(target) + element, static_cast<std::uint16_t>(whole));
    return;
  }
  if (floats.delivered == FloatType::f32) {
    __stcs(reinterpret_cast<std::uint32_t*>(target) + element, nan ? kFloatNanF32 : __float_as_uint(value));
  } else {
    std::uint16_t bits = 0;
    if (floats.delivered == FloatType::f16)
      bits = nan ? kFloatNanF16 : __half_as_ushort(__float2half_rn(value));
    else
      bits = nan ? kFloatNanBf16 : __bfloat16_as_ushort(__float2bfloat16_rn(value));
    __stcs(reinterpret_cast<std::uint16_t*>(target) + element, bits);
  }
}

}  // namespace shard::gpu
