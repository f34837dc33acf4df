// Built without contraction of floating-point expressions (see CMakeLists.txt).
#include "transform/augment/augment_kernels.hpp"

// Vectors of unknown length cannot lie in arrays; such CPUs have fixed ones as well. The others that are left out would compile
// to the same loops.
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

void hue(std::uint8_t* rgb, std::size_t n, float shift) {
  Piece in;
  Bytes out;
  for (std::size_t at = 0; at < n; at += kPiece) {
    const std::size_t count = std::min(kPiece, n - at);
    load(rgb + 3 * at, count, in);
    for (std::size_t i = 0; i < kPiece; ++i) {
      const Rgb shifted = hue_shifted(in.r[i], in.g[i], in.b[i], shift);
      out.r[i] = shifted.r;
      out.g[i] = shifted.g;
      out.b[i] = shifted.b;
    }
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
