// Vector versions, one for each instruction set that Highway knows.
//
// Division is by the reciprocal with one step of correction by fused multiply-add (Markstein, "Computation of
// elementary functions on the IBM RISC System/6000 processor", 1990): correctly rounded save for few
// divisors, which the caller finds.
#include "image/preprocess/normalize_kernels.hpp"

// Vectors of unknown length are not written; such CPUs have fixed ones as well.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/preprocess/normalize_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as it must be.
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace shard::image::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void planes_u8(const std::uint8_t* rgb, std::size_t width, const std::array<std::byte*, 3>& planes) {
  for (std::size_t x = 0; x < width; ++x) {
    for (std::size_t channel = 0; channel < 3; ++channel)
      planes[channel][x] = std::byte{rgb[3 * x + channel]};
  }
}

NormalizeKernels choose_normalize_kernels() { return {planes_u8, nullptr}; }

#else

namespace hn = hwy::HWY_NAMESPACE;

using D8 = hn::CappedTag<std::uint8_t, 32>;
using DF = hn::ScalableTag<float>;
using D32 = hn::RebindToSigned<DF>;
using DU32 = hn::RebindToUnsigned<DF>;
using VF = hn::Vec<DF>;

constexpr std::size_t kStep = hn::MaxLanes(D8());  // pixels at once
constexpr std::size_t kLanes = hn::MaxLanes(DF());

// Calls step(first pixel, pixel pointer, 0) for whole steps; the rest of a row goes through buffers of a
// step's size.
template <std::size_t kElementBytes, class Step>
HWY_INLINE void for_each_step(const std::uint8_t* rgb, std::size_t width,
                              const std::array<std::byte*, 3>& planes, const Step& step) {
  std::size_t x = 0;
  for (; x + kStep <= width; x += kStep) {
    step(rgb + 3 * x, planes[0] + x * kElementBytes, planes[1] + x * kElementBytes,
         planes[2] + x * kElementBytes);
  }
  if (x == width) return;
  alignas(64) std::uint8_t pixels[3 * kStep] = {};
  alignas(64) std::byte ends[3][kStep * kElementBytes];
  std::memcpy(pixels, rgb + 3 * x, 3 * (width - x));
  step(pixels, ends[0], ends[1], ends[2]);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    std::memcpy(planes[channel] + x * kElementBytes, ends[channel], (width - x) * kElementBytes);
  }
}

void planes_u8(const std::uint8_t* rgb, std::size_t width, const std::array<std::byte*, 3>& planes) {
  for_each_step<1>(rgb, width, planes,
                   [](const std::uint8_t* pixels, std::byte* r, std::byte* g, std::byte* b) HWY_ATTR {
                     const D8 d;
                     hn::Vec<D8> red;
                     hn::Vec<D8> green;
                     hn::Vec<D8> blue;
                     hn::LoadInterleaved3(d, pixels, red, green, blue);
                     hn::StoreU(red, d, reinterpret_cast<std::uint8_t*>(r));
                     hn::StoreU(green, d, reinterpret_cast<std::uint8_t*>(g));
                     hn::StoreU(blue, d, reinterpret_cast<std::uint8_t*>(b));
                   });
}

HWY_INLINE VF divide(VF value, VF divisor, VF reciprocal) {
  const VF quotient = hn::Mul(value, reciprocal);
  return hn::MulAdd(hn::NegMulAdd(quotient, divisor, value), reciprocal, quotient);
}

struct StoreF32 {
  static constexpr std::size_t kBytes = 4;
  HWY_INLINE void operator()(VF value, std::byte* out) const {
    hn::StoreU(value, DF(), reinterpret_cast<float*>(out));
  }
};

struct StoreF16 {
  static constexpr std::size_t kBytes = 2;
  HWY_INLINE void operator()(VF value, std::byte* out) const {
    const hn::Rebind<hwy::float16_t, DF> d16;
    hn::StoreU(hn::DemoteTo(d16, value), d16, reinterpret_cast<hwy::float16_t*>(out));
  }
};

struct StoreBf16 {
  static constexpr std::size_t kBytes = 2;
  HWY_INLINE void operator()(VF value, std::byte* out) const {
    const DU32 du32;
    const hn::Rebind<std::uint16_t, DF> d16;
    const auto bits = hn::BitCast(du32, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du32, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du32, 0x7FFF)), odd));
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(D32(), rounded)), d16, reinterpret_cast<std::uint16_t*>(out));
  }
};

template <class StoreTo>
HWY_INLINE void planes_as(const std::uint8_t* rgb, std::size_t width, const Normalization& normalization,
                          const std::array<std::byte*, 3>& planes) {
  for_each_step<StoreTo::kBytes>(
      rgb, width, planes, [&](const std::uint8_t* pixels, std::byte* r, std::byte* g, std::byte* b) HWY_ATTR {
        const D8 d8;
        const DF df;
        const hn::Rebind<std::uint8_t, DF> d8_part;
        hn::Vec<D8> colours[3];
        hn::LoadInterleaved3(d8, pixels, colours[0], colours[1], colours[2]);
        std::byte* const outs[3] = {r, g, b};
        alignas(64) std::uint8_t bytes[kStep];
        const VF full = hn::Set(df, 255.0F);
        const VF inverse_full = hn::Set(df, 1.0F / 255.0F);
        for (std::size_t channel = 0; channel < 3; ++channel) {
          hn::Store(colours[channel], d8, bytes);
          const VF mean = hn::Set(df, normalization.mean[channel]);
          const VF std = hn::Set(df, normalization.std[channel]);
          const VF inverse_std = hn::Set(df, 1.0F / normalization.std[channel]);
          for (std::size_t x = 0; x < kStep; x += kLanes) {
            const VF value = hn::ConvertTo(df, hn::PromoteTo(D32(), hn::Load(d8_part, bytes + x)));
            const VF centered = hn::Sub(divide(value, full, inverse_full), mean);
            StoreTo()(divide(centered, std, inverse_std), outs[channel] + x * StoreTo::kBytes);
          }
        }
      });
}

void planes_float(const std::uint8_t* rgb, std::size_t width, DType dtype, const Normalization& normalization,
                  const std::array<std::byte*, 3>& planes) {
  if (dtype == DType::f32) {
    planes_as<StoreF32>(rgb, width, normalization, planes);
  } else if (dtype == DType::f16) {
    planes_as<StoreF16>(rgb, width, normalization, planes);
  } else {
    planes_as<StoreBf16>(rgb, width, normalization, planes);
  }
}

NormalizeKernels choose_normalize_kernels() { return {planes_u8, planes_float}; }

#endif

}  // namespace
}  // namespace shard::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shard::image {

HWY_EXPORT(choose_normalize_kernels);

NormalizeKernels normalize_kernels() { return HWY_DYNAMIC_DISPATCH(choose_normalize_kernels)(); }

}  // namespace shard::image
#endif
