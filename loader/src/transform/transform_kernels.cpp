// Vector versions, one for each instruction set that Highway knows.
#include "transform/transform_kernels.hpp"

// Vectors of unknown length cannot lie in arrays; such CPUs have fixed ones as well.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/transform_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as it must be.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstring>
#include <string>

HWY_BEFORE_NAMESPACE();
namespace shard::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

TransformKernels choose_kernels() { return scalar_transform_kernels(); }

#else

namespace hn = hwy::HWY_NAMESPACE;

using D16 = hn::ScalableTag<std::int16_t>;
using DU16 = hn::RebindToUnsigned<D16>;
using D8 = hn::Repartition<std::uint8_t, D16>;
using V16 = hn::Vec<D16>;
using V8 = hn::Vec<D8>;
constexpr std::size_t kLanes16 = hn::MaxLanes(D16());
constexpr std::size_t kUnits = kLanes16 / HorizontalPlan::kUnit;  // of a vector

// 16 bytes at row + offsets[b] into block b.
template <class D>
HWY_INLINE hn::Vec<D> load_units(D d, const std::uint8_t* row, const std::size_t* offsets) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::LoadU(d, row + offsets[0]);
  } else {
    const hn::Half<D> half;
    constexpr std::size_t kHalfUnits = hn::MaxLanes(hn::Half<D>()) / 16;
    return hn::Combine(d, load_units(half, row, offsets + kHalfUnits), load_units(half, row, offsets));
  }
}

HWY_INLINE V16 tap_term(V8 bytes_in_upper_halves, V16 weights) {
  const V16 values = hn::BitCast(D16(), hn::ShiftRight<1>(hn::BitCast(DU16(), bytes_in_upper_halves)));
  return hn::MulFixedPoint15(values, weights);
}

// One window and kTaps taps: everything of a vector's units stays in registers for all rows.
template <std::uint32_t kTaps>
void horizontal_rows(const HorizontalPlan& plan, const std::uint8_t* const* rows,
                     const std::uint8_t* const* soon, std::size_t count, std::int16_t* const* outs) {
  const D16 d16;
  const D8 d8;
  const std::size_t channels = plan.channels;
  const std::size_t row_values = plan.row_values();
  for (std::size_t unit = 0; unit < plan.units; unit += kUnits) {
    std::size_t offsets[kUnits];
    for (std::size_t u = 0; u < kUnits; ++u) offsets[u] = plan.offsets[unit + u];
    const V8 shuffle = hn::LoadU(d8, plan.shuffles.data() + unit * 16);
    V16 weights[kTaps];
    for (std::size_t k = 0; k < kTaps; ++k)
      weights[k] = hn::LoadU(d16, plan.weights.data() + k * row_values + unit * HorizontalPlan::kUnit);
    for (std::size_t r = 0; r < count; ++r) {
      const std::uint8_t* const row = rows[r];
      hwy::Prefetch(soon[r] + offsets[0]);
      V16 sum = tap_term(hn::TableLookupBytesOr0(load_units(d8, row, offsets), shuffle), weights[0]);
      for (std::size_t k = 1; k < kTaps; ++k)
        sum = hn::Add(sum,
                      tap_term(hn::TableLookupBytesOr0(load_units(d8, row + k * channels, offsets), shuffle),
                               weights[k]));
      hn::StoreU(hn::Add(sum, sum), d16, outs[r] + unit * HorizontalPlan::kUnit);
    }
  }
}

// Any number of windows and taps.
void horizontal_rows_any(const HorizontalPlan& plan, const std::uint8_t* const* rows,
                         const std::uint8_t* const* soon, std::size_t count, std::int16_t* const* outs) {
  const D16 d16;
  const D8 d8;
  const std::size_t row_values = plan.row_values();
  const std::size_t window_shuffles = std::size_t{plan.units} * 16;
  for (std::size_t unit = 0; unit < plan.units; unit += kUnits) {
    std::size_t offsets[kUnits];
    for (std::size_t u = 0; u < kUnits; ++u) offsets[u] = plan.offsets[unit + u];
    for (std::size_t r = 0; r < count; ++r) {
      const std::uint8_t* row = rows[r];
      hwy::Prefetch(soon[r] + offsets[0]);
      const std::int16_t* weights = plan.weights.data() + unit * HorizontalPlan::kUnit;
      V16 sum = hn::Zero(d16);
      for (std::uint32_t k = 0; k < plan.max_taps; ++k, row += plan.channels, weights += row_values) {
        const std::uint8_t* shuffles = plan.shuffles.data() + unit * 16;
        V8 bytes = hn::TableLookupBytesOr0(load_units(d8, row, offsets), hn::LoadU(d8, shuffles));
        for (std::uint32_t window = 1; window < plan.windows; ++window) {
          shuffles += window_shuffles;
          bytes = hn::Or(bytes, hn::TableLookupBytesOr0(load_units(d8, row + 16 * window, offsets),
                                                        hn::LoadU(d8, shuffles)));
        }
        sum = hn::Add(sum, tap_term(bytes, hn::LoadU(d16, weights)));
      }
      hn::StoreU(hn::Add(sum, sum), d16, outs[r] + unit * HorizontalPlan::kUnit);
    }
  }
}

void horizontal(const HorizontalPlan& plan, const std::uint8_t* const* rows, const std::uint8_t* const* soon,
                std::size_t count, std::int16_t* const* outs) {
  if (plan.windows == 1 && plan.max_taps == 1) return horizontal_rows<1>(plan, rows, soon, count, outs);
  if (plan.windows == 1 && plan.max_taps == 2) return horizontal_rows<2>(plan, rows, soon, count, outs);
  if (plan.windows == 1 && plan.max_taps == 3) return horizontal_rows<3>(plan, rows, soon, count, outs);
  horizontal_rows_any(plan, rows, soon, count, outs);
}

template <class D>
HWY_INLINE void stream_or_store(hn::Vec<D> v, D d, hn::TFromD<D>* out, bool past_caches) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) >= 16) {
    if (past_caches) return hn::Stream(v, d, out);
  }
  hn::StoreU(v, d, out);
}

template <class D>
bool is_aligned(D /*d*/, const void* out) {
  return reinterpret_cast<std::uintptr_t>(out) % (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>)) == 0;
}

template <std::size_t kTaps>
void vertical_row(const std::int16_t* const* rows, const std::int16_t* weights, std::size_t taps,
                  std::size_t n, std::uint8_t* out, bool past_caches) {
  const D16 d16;
  const hn::Rebind<std::uint8_t, D16> d8;
  const std::size_t count = kTaps != 0 ? kTaps : taps;
  const bool stream = past_caches && is_aligned(d8, out);
  for (std::size_t x = 0; x < n; x += kLanes16) {
    V16 sum = hn::Zero(d16);
    for (std::size_t k = 0; k < count; ++k)
      sum = hn::Add(sum, hn::MulFixedPoint15(hn::LoadU(d16, rows[k] + x), hn::Set(d16, weights[k])));
    const auto bytes = hn::DemoteTo(d8, hn::ShiftRight<6>(hn::Add(sum, hn::Set(d16, 32))));
    if (x + kLanes16 <= n) {
      stream_or_store(bytes, d8, out + x, stream);
    } else {
      alignas(64) std::uint8_t end[kLanes16];
      hn::Store(bytes, d8, end);
      std::memcpy(out + x, end, n - x);
    }
  }
}

void vertical(const std::int16_t* const* rows, const std::int16_t* weights, std::size_t taps, std::size_t n,
              std::uint8_t* out, bool past_caches) {
  if (taps == 2) return vertical_row<2>(rows, weights, taps, n, out, past_caches);
  if (taps == 3) return vertical_row<3>(rows, weights, taps, n, out, past_caches);
  vertical_row<0>(rows, weights, taps, n, out, past_caches);
}

template <std::uint32_t kChannels, class D>
HWY_INLINE void load_pixels(D d, const hn::TFromD<D>* in, hn::Vec<D> (&v)[4]) {
  if constexpr (kChannels == 1) v[0] = hn::LoadU(d, in);
  if constexpr (kChannels == 2) hn::LoadInterleaved2(d, in, v[0], v[1]);
  if constexpr (kChannels == 3) hn::LoadInterleaved3(d, in, v[0], v[1], v[2]);
  if constexpr (kChannels == 4) hn::LoadInterleaved4(d, in, v[0], v[1], v[2], v[3]);
}

template <std::uint32_t kChannels, class D>
HWY_INLINE void store_pixels(D d, const hn::Vec<D> (&v)[4], hn::TFromD<D>* out) {
  if constexpr (kChannels == 1) hn::StoreU(v[0], d, out);
  if constexpr (kChannels == 2) hn::StoreInterleaved2(v[0], v[1], d, out);
  if constexpr (kChannels == 3) hn::StoreInterleaved3(v[0], v[1], v[2], d, out);
  if constexpr (kChannels == 4) hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, out);
}

// Calls step(first pixel) for whole blocks, the last of which may overlap the one before; then rest(pixel)
// when there are fewer pixels than a block has.
template <std::size_t kBlock, class Step, class Rest>
HWY_INLINE void for_blocks(std::size_t pixels, const Step& step, const Rest& rest) {
  if (pixels < kBlock) {
    for (std::size_t x = 0; x < pixels; ++x) rest(x);
    return;
  }
  std::size_t x = 0;
  for (; x + kBlock <= pixels; x += kBlock) step(x);
  if (x < pixels) step(pixels - kBlock);
}

template <class T, std::uint32_t kChannels>
struct Pixels {
  // 16 bytes for the reversal, which needs a shuffle of bytes; 32 for the others.
  using DR = hn::CappedTag<T, 16 / sizeof(T)>;
  using D = hn::CappedTag<T, 32 / sizeof(T)>;

  static HWY_INLINE hn::Vec<DR> reversed(hn::Vec<DR> v) {
    alignas(16) std::uint8_t indices[16];
    for (std::size_t i = 0; i < 16; ++i)
      indices[i] =
          static_cast<std::uint8_t>((16 / sizeof(T) - 1 - i / sizeof(T)) * sizeof(T) + i % sizeof(T));
    const hn::Repartition<std::uint8_t, DR> d8;
    return hn::BitCast(DR(), hn::TableLookupBytes(hn::BitCast(d8, v), hn::Load(d8, indices)));
  }

  static void reverse(const T* in, std::size_t pixels, T* out) {
    constexpr std::size_t kBlock = hn::MaxLanes(DR());
    for_blocks<kBlock>(
        pixels,
        [&](std::size_t x) HWY_ATTR {
          hn::Vec<DR> v[4];
          load_pixels<kChannels>(DR(), in + x * kChannels, v);
          for (std::uint32_t c = 0; c < kChannels; ++c) v[c] = reversed(v[c]);
          store_pixels<kChannels>(DR(), v, out + (pixels - kBlock - x) * kChannels);
        },
        [&](std::size_t x) HWY_ATTR {
          for (std::uint32_t c = 0; c < kChannels; ++c)
            out[(pixels - 1 - x) * kChannels + c] = in[x * kChannels + c];
        });
  }

  static void split(const T* in, std::size_t pixels, T* const* planes) {
    for_blocks<hn::MaxLanes(D())>(
        pixels,
        [&](std::size_t x) HWY_ATTR {
          hn::Vec<D> v[4];
          load_pixels<kChannels>(D(), in + x * kChannels, v);
          for (std::uint32_t c = 0; c < kChannels; ++c) hn::StoreU(v[c], D(), planes[c] + x);
        },
        [&](std::size_t x) HWY_ATTR {
          for (std::uint32_t c = 0; c < kChannels; ++c) planes[c][x] = in[x * kChannels + c];
        });
  }

  static void join(const T* const* planes, std::size_t pixels, T* out) {
    for_blocks<hn::MaxLanes(D())>(
        pixels,
        [&](std::size_t x) HWY_ATTR {
          hn::Vec<D> v[4];
          for (std::uint32_t c = 0; c < kChannels; ++c) v[c] = hn::LoadU(D(), planes[c] + x);
          store_pixels<kChannels>(D(), v, out + x * kChannels);
        },
        [&](std::size_t x) HWY_ATTR {
          for (std::uint32_t c = 0; c < kChannels; ++c) out[x * kChannels + c] = planes[c][x];
        });
  }
};

template <class T>
void reverse(const std::byte* in, std::size_t pixels, std::uint32_t channels, std::byte* out) {
  const auto* from = reinterpret_cast<const T*>(in);
  auto* to = reinterpret_cast<T*>(out);
  if (channels == 1) Pixels<T, 1>::reverse(from, pixels, to);
  if (channels == 2) Pixels<T, 2>::reverse(from, pixels, to);
  if (channels == 3) Pixels<T, 3>::reverse(from, pixels, to);
  if (channels == 4) Pixels<T, 4>::reverse(from, pixels, to);
}

template <class T>
void split(const std::byte* in, std::size_t pixels, std::uint32_t channels, std::byte* const* planes) {
  const auto* from = reinterpret_cast<const T*>(in);
  T* to[4] = {};
  for (std::uint32_t c = 0; c < channels; ++c) to[c] = reinterpret_cast<T*>(planes[c]);
  if (channels == 1) Pixels<T, 1>::split(from, pixels, to);
  if (channels == 2) Pixels<T, 2>::split(from, pixels, to);
  if (channels == 3) Pixels<T, 3>::split(from, pixels, to);
  if (channels == 4) Pixels<T, 4>::split(from, pixels, to);
}

template <class T>
void join(const std::byte* const* planes, std::size_t pixels, std::uint32_t channels, std::byte* out) {
  const T* from[4] = {};
  for (std::uint32_t c = 0; c < channels; ++c) from[c] = reinterpret_cast<const T*>(planes[c]);
  auto* to = reinterpret_cast<T*>(out);
  if (channels == 1) Pixels<T, 1>::join(from, pixels, to);
  if (channels == 2) Pixels<T, 2>::join(from, pixels, to);
  if (channels == 3) Pixels<T, 3>::join(from, pixels, to);
  if (channels == 4) Pixels<T, 4>::join(from, pixels, to);
}

using DF = hn::CappedTag<float, ValueLanes::kMaxLanes>;
using DI32 = hn::RebindToSigned<DF>;
using DU32 = hn::RebindToUnsigned<DF>;
using VF = hn::Vec<DF>;
constexpr std::size_t kFloats = hn::MaxLanes(DF());

// Division by the reciprocal with one step of correction (Markstein, "Computation of elementary functions on
// the IBM RISC System/6000 processor", 1990): correctly rounded save for few divisors, which the caller
// finds.
HWY_INLINE VF divide(VF value, VF divisor, VF reciprocal) {
  const VF quotient = hn::Mul(value, reciprocal);
  return hn::MulAdd(hn::NegMulAdd(quotient, divisor, value), reciprocal, quotient);
}

struct ByLine {
  static HWY_INLINE VF value(const ValueLanes& lanes, std::size_t at, VF byte) {
    return hn::MulAdd(byte, hn::Load(DF(), &lanes.scale[at]), hn::Load(DF(), &lanes.bias[at]));
  }
};

struct BySteps {
  static HWY_INLINE VF value(const ValueLanes& lanes, std::size_t at, VF byte) {
    const DF df;
    const VF scaled = divide(byte, hn::Set(df, 255.0F), hn::Set(df, 1.0F / 255.0F));
    const VF centered = hn::Sub(scaled, hn::Load(df, &lanes.mean[at]));
    return divide(centered, hn::Load(df, &lanes.std[at]), hn::Load(df, &lanes.inverse_std[at]));
  }
};

struct StoreF32 {
  using D = hn::Rebind<std::uint32_t, DF>;
  static HWY_INLINE hn::Vec<D> bits(VF value) { return hn::BitCast(D(), value); }
};

struct StoreF16 {
  using D = hn::Rebind<std::uint16_t, DF>;
  static HWY_INLINE hn::Vec<D> bits(VF value) {
    return hn::BitCast(D(), hn::DemoteTo(hn::Rebind<hwy::float16_t, DF>(), value));
  }
};

struct StoreBf16 {
  using D = hn::Rebind<std::uint16_t, DF>;
  static HWY_INLINE hn::Vec<D> bits(VF value) {
    const DU32 d32;
    const auto bits = hn::BitCast(d32, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d32, 0x7FFF)), odd));
    return hn::DemoteTo(D(), hn::BitCast(DI32(), rounded));
  }
};

template <class How, class To>
HWY_INLINE void value_block(const ValueLanes& lanes, const std::uint8_t* in, hn::TFromD<typename To::D>* out,
                            bool stream) {
  const hn::Rebind<std::uint8_t, DF> d8;
  for (std::size_t at = 0; at < lanes.channels * kFloats; at += kFloats) {
    const VF byte = hn::ConvertTo(DF(), hn::PromoteTo(DI32(), hn::LoadU(d8, in + at)));
    stream_or_store(To::bits(How::value(lanes, at, byte)), typename To::D(), out + at, stream);
  }
}

template <class How, class To>
void values_to(const ValueLanes& lanes, const std::uint8_t* in, std::size_t n, std::byte* out_bytes) {
  using T = hn::TFromD<typename To::D>;
  T* const out = reinterpret_cast<T*>(out_bytes);
  const bool stream = is_aligned(typename To::D(), out);
  const std::size_t block = lanes.channels * kFloats;
  std::size_t x = 0;
  for (; x + block <= n; x += block) value_block<How, To>(lanes, in + x, out + x, stream);
  if (x == n) return;
  std::uint8_t bytes[4 * kFloats] = {};
  T values[4 * kFloats];
  std::memcpy(bytes, in + x, n - x);
  value_block<How, To>(lanes, bytes, values, false);
  std::memcpy(out + x, values, (n - x) * sizeof(T));
}

template <class How>
void values(const ValueLanes& lanes, const std::uint8_t* in, std::size_t n, std::byte* out) {
  if (lanes.map->dtype == DType::f32) return values_to<How, StoreF32>(lanes, in, n, out);
  if (lanes.map->dtype == DType::f16) return values_to<How, StoreF16>(lanes, in, n, out);
  values_to<How, StoreBf16>(lanes, in, n, out);
}

TransformKernels choose_kernels() {
  return {horizontal,
          vertical,
          {reverse<std::uint8_t>, reverse<std::uint16_t>, reverse<std::uint32_t>},
          {split<std::uint8_t>, split<std::uint16_t>, split<std::uint32_t>},
          {join<std::uint8_t>, join<std::uint16_t>, join<std::uint32_t>},
          values<ByLine>,
          values<BySteps>};
}

#endif

}  // namespace
}  // namespace shard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shard {

HWY_EXPORT(choose_kernels);

TransformKernels transform_kernels() { return HWY_DYNAMIC_DISPATCH(choose_kernels)(); }

void flush_stores() noexcept { hwy::FlushStream(); }

}  // namespace shard
#endif
