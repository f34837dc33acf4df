// Built without contraction of floating-point expressions (see CMakeLists.txt).
#include "transform/augment/augment_kernels.hpp"

// Vectors of unknown length cannot lie in arrays; such CPUs have fixed ones as well.
// The others that are left out would compile to the same loops.
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/augment/augment_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as it must be.
#include <hwy/highway.h>

#include <algorithm>
#include <array>

#include "transform/augment/pixel_math.hpp"

HWY_BEFORE_NAMESPACE();
namespace shard::augment::HWY_NAMESPACE {
namespace {

// Loops of a fixed length over a piece of pixels, so that they become vectors.
constexpr std::size_t kPiece = 64;
struct Piece {
  alignas(64) float r[kPiece];
  alignas(64) float g[kPiece];
  alignas(64) float b[kPiece];
};

HWY_INLINE void load(const std::uint8_t* rgb, std::size_t n, Piece& piece) {
  namespace hn = hwy::HWY_NAMESPACE;
  if (n == kPiece) {
    const hn::CappedTag<std::uint8_t, 16> d;
    alignas(64) std::uint8_t planes[3][kPiece];
    for (std::size_t i = 0; i < kPiece; i += hn::Lanes(d)) {
      hn::Vec<decltype(d)> r;
      hn::Vec<decltype(d)> g;
      hn::Vec<decltype(d)> b;
      hn::LoadInterleaved3(d, rgb + 3 * i, r, g, b);
      hn::Store(r, d, planes[0] + i);
      hn::Store(g, d, planes[1] + i);
      hn::Store(b, d, planes[2] + i);
    }
    for (std::size_t i = 0; i < kPiece; ++i) piece.r[i] = static_cast<float>(planes[0][i]);
    for (std::size_t i = 0; i < kPiece; ++i) piece.g[i] = static_cast<float>(planes[1][i]);
    for (std::size_t i = 0; i < kPiece; ++i) piece.b[i] = static_cast<float>(planes[2][i]);
    return;
  }
  for (std::size_t i = 0; i < kPiece; ++i) {
    const std::size_t at = i < n ? 3 * i : 0;
    piece.r[i] = static_cast<float>(rgb[at]);
    piece.g[i] = static_cast<float>(rgb[at + 1]);
    piece.b[i] = static_cast<float>(rgb[at + 2]);
  }
}

struct Bytes {
  alignas(64) std::uint8_t r[kPiece];
  alignas(64) std::uint8_t g[kPiece];
  alignas(64) std::uint8_t b[kPiece];
};
HWY_INLINE void store(const Bytes& bytes, std::size_t n, std::uint8_t* rgb) {
  namespace hn = hwy::HWY_NAMESPACE;
  if (n == kPiece) {
    const hn::CappedTag<std::uint8_t, 16> d;
    for (std::size_t i = 0; i < kPiece; i += hn::Lanes(d))
      hn::StoreInterleaved3(hn::Load(d, bytes.r + i), hn::Load(d, bytes.g + i), hn::Load(d, bytes.b + i), d,
                            rgb + 3 * i);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    rgb[3 * i] = bytes.r[i];
    rgb[3 * i + 1] = bytes.g[i];
    rgb[3 * i + 2] = bytes.b[i];
  }
}

void saturation(std::uint8_t* rgb, std::size_t n, float factor, float rest) {
  Piece in;
  Bytes out;
  for (std::size_t at = 0; at < n; at += kPiece) {
    const std::size_t count = std::min(kPiece, n - at);
    load(rgb + 3 * at, count, in);
    for (std::size_t i = 0; i < kPiece; ++i) {
      const auto gray = static_cast<float>(gray_of(in.r[i], in.g[i], in.b[i]));
      out.r[i] = blend(in.r[i], gray, factor, rest);
      out.g[i] = blend(in.g[i], gray, factor, rest);
      out.b[i] = blend(in.b[i], gray, factor, rest);
    }
    store(out, count, rgb + 3 * at);
  }
}

// hue_shifted() of vectors, which no compiler here makes of its loop: the same steps,
// but for divisions of a channel that is not used.
namespace hn = hwy::HWY_NAMESPACE;
using DF = hn::CappedTag<float, 16>;
using VF = hn::Vec<DF>;
using MF = hn::Mask<DF>;

HWY_INLINE VF fraction(VF v) { return hn::Sub(v, hn::Floor(v)); }
HWY_INLINE VF unit(VF v) { return hn::Min(hn::Max(v, hn::Zero(DF())), hn::Set(DF(), 1.0F)); }
HWY_INLINE VF choose(MF first, VF a, MF second, VF b, VF c) {
  return hn::IfThenElse(first, a, hn::IfThenElse(second, b, c));
}
HWY_INLINE void store_unit(VF v, std::uint8_t* out) {
  const hn::RebindToSigned<DF> di;
  const hn::Rebind<std::uint8_t, DF> d8;
  hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(di, hn::Mul(v, hn::Set(DF(), 255.999F)))), d8, out);
}

HWY_INLINE void hue_vector(const Piece& in, std::size_t i, VF shift, Bytes& out) {
  const DF d;
  const VF one = hn::Set(d, 1.0F);
  const VF unit_of_byte = hn::Set(d, 1.0F / 255.0F);
  const VF r = hn::Mul(hn::Load(d, in.r + i), unit_of_byte);
  const VF g = hn::Mul(hn::Load(d, in.g + i), unit_of_byte);
  const VF b = hn::Mul(hn::Load(d, in.b + i), unit_of_byte);
  const VF high = hn::Max(hn::Max(r, g), b);
  const VF range = hn::Sub(high, hn::Min(hn::Min(r, g), b));
  const MF gray = hn::Eq(range, hn::Zero(d));
  const VF s = hn::Div(range, hn::IfThenElse(gray, one, high));
  const MF red_is_high = hn::Eq(high, r);
  const MF green_is_high = hn::Eq(high, g);
  // (turn + far / range) - near / range, where `far` and `near` are how much the two other channels
  // lie below the highest.
  const VF divisor = hn::IfThenElse(gray, one, range);
  const VF far_one = choose(red_is_high, b, green_is_high, r, g);
  const VF near_one = choose(red_is_high, g, green_is_high, b, r);
  const VF turn = choose(red_is_high, hn::Zero(d), green_is_high, hn::Set(d, 2.0F), hn::Set(d, 4.0F));
  const VF sixths = hn::Sub(hn::Add(turn, hn::Div(hn::Sub(high, far_one), divisor)),
                            hn::Div(hn::Sub(high, near_one), divisor));
  const VF h = fraction(hn::Add(hn::Mul(sixths, hn::Set(d, 1.0F / 6.0F)), one));
  const VF h6 = hn::Mul(fraction(hn::Add(h, shift)), hn::Set(d, 6.0F));
  const VF whole = hn::Floor(h6);
  const VF sector = hn::IfThenZeroElse(hn::Ge(whole, hn::Set(d, 6.0F)), whole);
  const VF sf = hn::Mul(s, hn::Sub(h6, whole));
  const VF rest = hn::Sub(one, s);
  const VF q = unit(hn::Mul(hn::Sub(one, sf), high));
  const VF t = unit(hn::Mul(hn::Add(sf, rest), high));
  const VF p = unit(hn::Mul(rest, high));
  const auto is = [&](float n) HWY_ATTR { return hn::Eq(sector, hn::Set(d, n)); };
  const MF is0 = is(0.0F);
  const MF is1 = is(1.0F);
  const MF is2 = is(2.0F);
  const MF is3 = is(3.0F);
  const MF is4 = is(4.0F);
  store_unit(hn::IfThenElse(is1, q, choose(hn::Or(is2, is3), p, is4, t, high)), out.r + i);
  store_unit(hn::IfThenElse(is0, t, choose(hn::Or(is1, is2), high, is3, q, p)), out.g + i);
  store_unit(hn::IfThenElse(hn::Or(is0, is1), p, choose(is2, t, hn::Or(is3, is4), high, q)), out.b + i);
}

void hue(std::uint8_t* rgb, std::size_t n, float shift) {
  Piece in;
  Bytes out;
  const VF shifts = hn::Set(DF(), shift);
  for (std::size_t at = 0; at < n; at += kPiece) {
    const std::size_t count = std::min(kPiece, n - at);
    load(rgb + 3 * at, count, in);
    for (std::size_t i = 0; i < kPiece; i += hn::Lanes(DF())) hue_vector(in, i, shifts, out);
    store(out, count, rgb + 3 * at);
  }
}

void grayscale(std::uint8_t* rgb, std::size_t n) {
  Piece in;
  Bytes out;
  for (std::size_t at = 0; at < n; at += kPiece) {
    const std::size_t count = std::min(kPiece, n - at);
    load(rgb + 3 * at, count, in);
    for (std::size_t i = 0; i < kPiece; ++i)
      out.r[i] = out.g[i] = out.b[i] = static_cast<std::uint8_t>(gray_of(in.r[i], in.g[i], in.b[i]));
    store(out, count, rgb + 3 * at);
  }
}

std::uint64_t gray_sum(const std::uint8_t* rgb, std::size_t n) {
  Piece in;
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < n; at += kPiece) {
    const std::size_t count = std::min(kPiece, n - at);
    load(rgb + 3 * at, count, in);
    alignas(64) std::int32_t grays[kPiece];
    for (std::size_t i = 0; i < kPiece; ++i) grays[i] = gray_of(in.r[i], in.g[i], in.b[i]);
    std::int32_t part = 0;
    if (count == kPiece)
      for (std::size_t i = 0; i < kPiece; ++i) part += grays[i];
    else
      for (std::size_t i = 0; i < count; ++i) part += grays[i];
    sum += static_cast<std::uint64_t>(part);
  }
  return sum;
}

void table(std::uint8_t* values, std::size_t n, const std::uint8_t* entries) {
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (std::size_t k = 0; k < 8; ++k) values[i + k] = entries[values[i + k]];
  for (; i < n; ++i) values[i] = entries[values[i]];
}

void sharpen(const std::uint8_t* HWY_RESTRICT above, const std::uint8_t* HWY_RESTRICT row,
             const std::uint8_t* HWY_RESTRICT below, std::size_t n, std::uint32_t channels, float rest,
             std::uint8_t* HWY_RESTRICT out) {
  const std::uint8_t* const up[3] = {above - channels, above, above + channels};
  const std::uint8_t* const here[2] = {row - channels, row + channels};
  const std::uint8_t* const down[3] = {below - channels, below, below + channels};
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t ring =
        up[0][i] + up[1][i] + up[2][i] + here[0][i] + here[1][i] + down[0][i] + down[1][i] + down[2][i];
    out[i] = sharpened(row[i], ring, rest);
  }
}

void weigh(const std::uint8_t* HWY_RESTRICT row, std::size_t n, float weight, bool add,
           float* HWY_RESTRICT sum) {
  if (add)
    for (std::size_t i = 0; i < n; ++i) sum[i] = sum[i] + static_cast<float>(row[i]) * weight;
  else
    for (std::size_t i = 0; i < n; ++i) sum[i] = static_cast<float>(row[i]) * weight;
}

void blur_row(const float* HWY_RESTRICT row, std::size_t n, std::uint32_t channels,
              const float* HWY_RESTRICT weights, std::uint32_t radius, std::uint8_t* HWY_RESTRICT out) {
  alignas(64) float sums[kPiece];
  for (std::size_t at = 0; at < n; at += kPiece) {
    const std::size_t count = std::min(kPiece, n - at);
    const float* from = row + at;
    for (std::size_t i = 0; i < kPiece; ++i) sums[i] = from[i] * weights[radius];
    for (std::uint32_t k = 1; k <= 2 * radius; ++k) {
      from += channels;
      const float weight = weights[k < radius ? radius - k : k - radius];
      for (std::size_t i = 0; i < kPiece; ++i) sums[i] = sums[i] + from[i] * weight;
    }
    alignas(64) std::uint8_t bytes[kPiece];
    for (std::size_t i = 0; i < kPiece; ++i) bytes[i] = nearest_byte(sums[i]);
    std::copy_n(bytes, count, out + at);
  }
}

void cut(const float* HWY_RESTRICT sum, std::size_t n, std::uint8_t* HWY_RESTRICT out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = cut_byte(sum[i]);
}

void affine_row(const float* matrix, std::int32_t y, std::int32_t width, std::int32_t height,
                float* HWY_RESTRICT xs, float* HWY_RESTRICT ys) {
  float m[6];
  std::copy_n(matrix, 6, m);
  for (std::int32_t x = 0; x < width; ++x) {
    const Place place = affine_place(m, x, y, width, height);
    xs[x] = place.x;
    ys[x] = place.y;
  }
}

}  // namespace

AugmentKernels kernels() {
  return {&saturation, &hue, &grayscale, &gray_sum, &table, &sharpen, &weigh, &blur_row, &cut, &affine_row};
}

}  // namespace shard::augment::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shard::augment {

HWY_EXPORT(kernels);

AugmentKernels augment_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

}  // namespace shard::augment
#endif
