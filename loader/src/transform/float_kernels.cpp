// Vector versions of the loops over floats, one for each instruction set that Highway knows. Built without
// contraction of floating-point expressions (see CMakeLists.txt): compilers would fuse the vectors' steps
// too.
#include "transform/float_kernels.hpp"

// Vectors of unknown length cannot lie in arrays; such CPUs have fixed ones as well.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/float_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as it must be.
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace shard::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
using DU16 = hn::Rebind<std::uint16_t, DF>;
using VF = hn::Vec<DF>;
using VU = hn::Vec<DU>;
constexpr std::size_t kFloats = hn::MaxLanes(DF());
static_assert(kFloatRowMultiple % kFloats == 0);
static_assert(FloatNormalization::kLanes >= kFloats);

struct F32 {
  using Stored = std::uint32_t;
  static HWY_INLINE VF load(const Stored* in) { return hn::BitCast(DF(), hn::LoadU(DU(), in)); }
  static HWY_INLINE void store(VF value, Stored* out) {
    const DU du;
    const VU bits = hn::BitCast(du, value);
    const auto number = hn::RebindMask(du, hn::Eq(value, value));
    hn::StoreU(hn::IfThenElse(number, bits, hn::Set(du, kFloatNanF32)), du, out);
  }
};

struct Bf16 {
  using Stored = std::uint16_t;
  static HWY_INLINE VF load(const Stored* in) {
    return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(DU(), hn::LoadU(DU16(), in))));
  }
  static HWY_INLINE void store(VF value, Stored* out) {
    const DU du;
    const VU bits = hn::BitCast(du, value);
    const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const VU rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), odd));
    const auto number = hn::RebindMask(du, hn::Eq(value, value));
    const VU all = hn::IfThenElse(number, rounded, hn::Set(du, kFloatNanBf16));
    hn::StoreU(hn::DemoteTo(DU16(), hn::BitCast(DI(), all)), DU16(), out);
  }
};

// By integers and exact steps, as not every instruction set has conversions that round as IEEE 754 does.
struct F16 {
  using Stored = std::uint16_t;
  static HWY_INLINE VF load(const Stored* in) {
    const DF df;
    const DU du;
    const VU bits = hn::PromoteTo(du, hn::LoadU(DU16(), in));
    const VU magnitude = hn::And(bits, hn::Set(du, 0x7FFF));
    const VU sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
    // The exponent's bias is 112 lower; the product is exact, and for subnormal values a normal one.
    const VF scaled = hn::Mul(hn::BitCast(df, hn::ShiftLeft<13>(magnitude)), hn::Set(df, 0x1p112F));
    const VU finite = hn::BitCast(du, scaled);
    const VU special = hn::Or(finite, hn::Set(du, 0x7F800000));  // infinity and NaN
    const auto is_special = hn::RebindMask(du, hn::Gt(hn::BitCast(DI(), magnitude), hn::Set(DI(), 0x7BFF)));
    return hn::BitCast(df, hn::Or(hn::IfThenElse(is_special, special, finite), sign));
  }
  static HWY_INLINE void store(VF value, Stored* out) {
    const DF df;
    const DU du;
    const DI di;
    const VU bits = hn::BitCast(du, value);
    const VU magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
    const VU sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
    // Below 2^-14: adding 1/2 rounds to units of 2^-24, as the sum's last bit is one.
    const VF shifted = hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5F));
    const VU subnormal = hn::Sub(hn::BitCast(du, shifted), hn::Set(du, 0x3F000000));
    const VU odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
    const VU rebased = hn::Sub(magnitude, hn::Set(du, 0x38000000 - 0xFFF));
    const VU normal = hn::ShiftRight<13>(hn::Add(rebased, odd));
    const auto above = [&](std::int32_t bound) {
      return hn::RebindMask(du, hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, bound)));
    };
    VU all = hn::IfThenElse(above(0x387FFFFF), normal, subnormal);
    all = hn::IfThenElse(above(0x477FEFFF), hn::Set(du, 0x7C00), all);  // rounds to 65,536 or more
    all = hn::Or(all, sign);
    all = hn::IfThenElse(above(0x7F800000), hn::Set(du, kFloatNanF16), all);
    hn::StoreU(hn::DemoteTo(DU16(), hn::BitCast(di, all)), DU16(), out);
  }
};

template <class Int, std::int32_t kMost>
struct Whole {
  using Stored = Int;
  using DStored = hn::Rebind<Int, DF>;
  static HWY_INLINE VF load(const Stored* in) {
    return hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::LoadU(DStored(), in)));
  }
  static HWY_INLINE void store(VF value, Stored* out) {
    const DF df;
    const VF inside = hn::Min(hn::Max(value, hn::Zero(df)), hn::Set(df, static_cast<float>(kMost)));
    hn::StoreU(hn::DemoteTo(DStored(), hn::NearestInt(inside)), DStored(), out);
  }
};
using U8 = Whole<std::uint8_t, 255>;
using U16 = Whole<std::uint16_t, 65535>;

template <class Type>
void load_as(const std::byte* in_bytes, std::size_t n, float* out) {
  using Stored = typename Type::Stored;
  const auto* const in = reinterpret_cast<const Stored*>(in_bytes);
  const DF df;
  std::size_t x = 0;
  for (; x + kFloats <= n; x += kFloats) hn::StoreU(Type::load(in + x), df, out + x);
  if (x == n) return;
  Stored rest[kFloats] = {};
  std::memcpy(rest, in + x, (n - x) * sizeof(Stored));
  hn::StoreU(Type::load(rest), df, out + x);
}

void load(DType stored, const std::byte* in, std::size_t n, float* out) {
  if (stored == DType::f32) return load_as<F32>(in, n, out);
  if (stored == DType::f16) return load_as<F16>(in, n, out);
  if (stored == DType::u8) return load_as<U8>(in, n, out);
  if (stored == DType::u16) return load_as<U16>(in, n, out);
  load_as<Bf16>(in, n, out);
}

void columns(const FloatColumns& plan, const float* row, float* out) {
  const DF df;
  const DI di;
  const auto step = hn::Set(di, static_cast<std::int32_t>(plan.channels));
  for (std::size_t j = 0; j < plan.pitch; j += kFloats) {
    auto at = hn::LoadU(di, plan.at.data() + j);
    const float* weights = plan.weights.data() + j;
    VF sum = hn::Mul(hn::GatherIndex(df, row, at), hn::LoadU(df, weights));
    for (std::uint32_t k = 1; k < plan.max_taps; ++k) {
      at = hn::Add(at, step);
      weights += plan.pitch;
      const VF weight = hn::LoadU(df, weights);
      const VF more = hn::Add(sum, hn::Mul(hn::GatherIndex(df, row, at), weight));
      sum = hn::IfThenElse(hn::Ne(weight, hn::Zero(df)), more, sum);  // what is no tap may be NaN
    }
    hn::StoreU(sum, df, out + j);
  }
}

void rows(const float* const* in, const float* weights, std::size_t taps, std::size_t n, float* out) {
  const DF df;
  for (std::size_t x = 0; x < n; x += kFloats) {
    VF sum = hn::Mul(hn::LoadU(df, in[0] + x), hn::Set(df, weights[0]));
    for (std::size_t k = 1; k < taps; ++k)
      sum = hn::Add(sum, hn::Mul(hn::LoadU(df, in[k] + x), hn::Set(df, weights[k])));
    hn::StoreU(sum, df, out + x);
  }
}

template <class Type>
void store_as(const FloatNormalization& normalization, const float* in, std::size_t n, std::byte* out_bytes) {
  using Stored = typename Type::Stored;
  auto* const out = reinterpret_cast<Stored*>(out_bytes);
  const DF df;
  const bool divides = normalization.divisor != 1.0F;
  const VF divisor = hn::Set(df, normalization.divisor);
  std::size_t lane = 0;
  for (std::size_t x = 0; x < n; x += kFloats) {
    VF value = hn::LoadU(df, in + x);
    if (divides) value = hn::Div(value, divisor);
    if (!normalization.none) {
      value = hn::Sub(value, hn::LoadU(df, normalization.mean.data() + lane));
      value = hn::Div(value, hn::LoadU(df, normalization.std.data() + lane));
      lane = (lane + kFloats) % normalization.channels;
    }
    if (x + kFloats <= n) {
      Type::store(value, out + x);
      continue;
    }
    Stored rest[kFloats];
    Type::store(value, rest);
    std::memcpy(out + x, rest, (n - x) * sizeof(Stored));
  }
}

void store(DType delivered, const FloatNormalization& normalization, const float* in, std::size_t n,
           std::byte* out) {
  if (delivered == DType::f32) return store_as<F32>(normalization, in, n, out);
  if (delivered == DType::f16) return store_as<F16>(normalization, in, n, out);
  if (delivered == DType::u8) return store_as<U8>(normalization, in, n, out);
  if (delivered == DType::u16) return store_as<U16>(normalization, in, n, out);
  store_as<Bf16>(normalization, in, n, out);
}

FloatKernels choose_float_kernels() { return {load, columns, rows, store}; }

}  // namespace
}  // namespace shard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shard {

HWY_EXPORT(choose_float_kernels);

FloatKernels float_kernels() { return HWY_DYNAMIC_DISPATCH(choose_float_kernels)(); }

}  // namespace shard
#endif
