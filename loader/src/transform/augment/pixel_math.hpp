// The arithmetic of augmentation, shared by host and CUDA: integers, or float32 with one rounding per step in
// the order that is written here. So both give the same bits. The steps are those of torchvision's kernels
// for uint8 tensors on CPUs.
//
// Files that include this are built without contraction of floating-point expressions (see CMakeLists.txt);
// where a product and a sum are rounded once, fused() says so. Nothing here is a transcendental function.
#pragma once

#include <cstdint>

#include "shard/loader/augment.hpp"
#include "transform/arithmetic.hpp"

// Inlined on the host, so that they use the instruction set of the loop around them.
#if defined(__CUDACC__)
#define SHARD_PIXEL __host__ __device__ inline
#else
#define SHARD_PIXEL inline __attribute__((always_inline))
#endif

namespace shard::augment {

// a * b + c, rounded once.
SHARD_PIXEL float fused(float a, float b, float c) noexcept {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
SHARD_PIXEL float floor_of(float v) noexcept {
#if defined(__CUDA_ARCH__)
  return floorf(v);
#else
  return __builtin_floorf(v);
#endif
}
// To the nearest whole number, ties to even.
SHARD_PIXEL float nearest_whole(float v) noexcept {
#if defined(__CUDA_ARCH__)
  return rintf(v);
#else
  return __builtin_rintf(v);
#endif
}
// The same for |v| < 2^22, in steps that every instruction set has.
SHARD_PIXEL float nearest_small(float v) noexcept { return (v + 12582912.0F) - 12582912.0F; }

SHARD_PIXEL float clamped(float v) noexcept {
  v = v < 0.0F ? 0.0F : v;
  return v > 255.0F ? 255.0F : v;
}
// Cut off, not rounded: as a cast of a tensor to uint8.
SHARD_PIXEL std::uint8_t cut_byte(float v) noexcept {
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(clamped(v)));
}
SHARD_PIXEL std::uint8_t nearest_byte(float v) noexcept {
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(nearest_small(clamped(v))));
}

// adjust_brightness
SHARD_PIXEL std::uint8_t brightness_of(std::uint8_t b, float factor) noexcept {
  return cut_byte(static_cast<float>(b) * factor);
}
// _blend: factor of the value, 1 - factor of the other one.
SHARD_PIXEL std::uint8_t blend(float value, float other, float factor, float rest) noexcept {
  return cut_byte(fused(other, rest, value * factor));
}
SHARD_PIXEL std::uint8_t solarized(std::uint8_t b, float threshold) noexcept {
  return static_cast<float>(b) >= threshold ? static_cast<std::uint8_t>(255 - b) : b;
}
// rgb_to_grayscale, cut off: 0 to 254.
SHARD_PIXEL std::int32_t gray_of(float r, float g, float b) noexcept {
  return static_cast<std::int32_t>(fused(b, 0.114F, fused(g, 0.587F, r * 0.2989F)));
}
// The mean of adjust_contrast, from the sum of the gray values.
SHARD_PIXEL float gray_mean(std::uint64_t sum, std::uint64_t pixels) noexcept {
  return static_cast<float>(sum) / static_cast<float>(pixels);
}
// autocontrast of a channel with values from `low` to `high`.
SHARD_PIXEL std::uint8_t stretched(std::uint8_t b, std::uint32_t low, std::uint32_t high) noexcept {
  if (low == high) return b;
  const float scale = static_cast<float>(high - low) * (1.0F / 255.0F);
  return cut_byte((static_cast<float>(b) - static_cast<float>(low)) / scale);
}
// equalize: the table entry for value `b`. `below`: pixels with smaller values. `step`: (pixels - those with
// the largest value there is) / 255; if it is 0, nothing changes.
SHARD_PIXEL std::uint8_t equalized(std::uint32_t b, std::uint32_t below, std::uint32_t step) noexcept {
  if (step == 0) return static_cast<std::uint8_t>(b);
  if (b == 0) return 0;
  const std::uint32_t value = (below + step / 2) / step;
  return static_cast<std::uint8_t>(value > 255 ? 255 : value);
}

struct Rgb {
  std::uint8_t r, g, b;
};
SHARD_PIXEL float unit_clamped(float v) noexcept {
  v = v < 0.0F ? 0.0F : v;
  return v > 1.0F ? 1.0F : v;
}
// adjust_hue: to HSV, hue + shift, and back. Without branches, so that compilers make vectors of it.
SHARD_PIXEL Rgb hue_shifted(float r8, float g8, float b8, float shift) noexcept {
  const float r = r8 * (1.0F / 255.0F);
  const float g = g8 * (1.0F / 255.0F);
  const float b = b8 * (1.0F / 255.0F);
  float high = r > g ? r : g;
  high = high > b ? high : b;
  float low = r < g ? r : g;
  low = low < b ? low : b;
  const bool gray = high == low;
  const float range = high - low;
  const float s = range / (gray ? 1.0F : high);
  const float divisor = gray ? 1.0F : range;
  const float rc = (high - r) / divisor;
  const float gc = (high - g) / divisor;
  const float bc = (high - b) / divisor;
  const float of_red = bc - gc;
  const float of_green = (rc + 2.0F) - bc;
  const float of_blue = (gc + 4.0F) - rc;
  const float sixths = high == r ? of_red : (high == g ? of_green : of_blue);
  float h = sixths * (1.0F / 6.0F) + 1.0F;
  h = h - floor_of(h);
  h = h + shift;
  h = h - floor_of(h);
  const float h6 = h * 6.0F;
  const float whole = floor_of(h6);
  const float f = h6 - whole;
  const std::int32_t sector = whole >= 6.0F ? 0 : static_cast<std::int32_t>(whole);
  const float sf = s * f;
  const float rest = 1.0F - s;
  const float q = unit_clamped((1.0F - sf) * high);
  const float t = unit_clamped((sf + rest) * high);
  const float p = unit_clamped(rest * high);
  const float v = high;
  const float red = sector == 1 ? q : (sector == 2 || sector == 3) ? p : sector == 4 ? t : v;
  const float green = sector == 0 ? t : (sector == 1 || sector == 2) ? v : sector == 3 ? q : p;
  const float blue = (sector == 0 || sector == 1)   ? p
                     : sector == 2                  ? t
                     : (sector == 3 || sector == 4) ? v
                                                    : q;
  return {static_cast<std::uint8_t>(static_cast<std::int32_t>(red * 255.999F)),
          static_cast<std::uint8_t>(static_cast<std::int32_t>(green * 255.999F)),
          static_cast<std::uint8_t>(static_cast<std::int32_t>(blue * 255.999F))};
}

// adjust_sharpness: `ring` is the sum of the 8 neighbours, rest: 1 - factor. The blurred value (ring + 5
// value) / 13 is never half-way between two whole numbers.
SHARD_PIXEL std::uint8_t sharpened(std::int32_t value, std::int32_t ring, float rest) noexcept {
  const std::int32_t blurred = (2 * (ring + 5 * value) + 13) / 26;
  const auto v = static_cast<float>(value);
  return cut_byte(fused(static_cast<float>(blurred) - v, rest, v));
}

// Where a kernel or a shift reads outside of [0, n): mirrored at the first and last one, again and again if
// it is farther away than there are pixels (numpy.pad, "reflect").
SHARD_PIXEL std::int32_t mirrored(std::int32_t i, std::int32_t n) noexcept {
  if (i < 0) i = -i;
  if (i < n) return i;
  const std::int32_t period = n > 1 ? 2 * n - 2 : 1;
  i %= period;
  return i >= n ? period - i : i;
}

// A place in the source, in pixels: 0 is the centre of the first one.
struct Place {
  float x, y;
};
// torchvision's _affine_grid, then grid_sample's unnormalisation. m: the matrix divided by half of the size.
SHARD_PIXEL Place affine_place(const float* m, std::int32_t x, std::int32_t y, std::int32_t width,
                               std::int32_t height) noexcept {
  const float across = static_cast<float>(2 * x + 1 - width) * 0.5F;
  const float down = static_cast<float>(2 * y + 1 - height) * 0.5F;
  const float gx = (across * m[0] + down * m[1]) + m[2];
  const float gy = (across * m[3] + down * m[4]) + m[5];
  return {(gx + 1.0F) * (static_cast<float>(width) * 0.5F) - 0.5F,
          (gy + 1.0F) * (static_cast<float>(height) * 0.5F) - 0.5F};
}
// _perspective_grid. c: the first three divided by half of the columns,
// the next three by half of the rows, then two.
SHARD_PIXEL Place perspective_place(const float* c, std::int32_t x, std::int32_t y, std::int32_t width,
                                    std::int32_t height) noexcept {
  const float across = static_cast<float>(x) + 0.5F;
  const float down = static_cast<float>(y) + 0.5F;
  const float divisor = (across * c[6] + down * c[7]) + 1.0F;
  const float gx = ((across * c[0] + down * c[1]) + c[2]) / divisor - 1.0F;
  const float gy = ((across * c[3] + down * c[4]) + c[5]) / divisor - 1.0F;
  return {(gx + 1.0F) * (static_cast<float>(width) * 0.5F) - 0.5F,
          (gy + 1.0F) * (static_cast<float>(height) * 0.5F) - 0.5F};
}

SHARD_PIXEL float fill_of(const float* fills, std::uint32_t channel) noexcept {
  return fills[channel < 4 ? channel : 0];
}

// grid_sample with padding by zeros, then torchvision's fill: the pixel at `place` of `in` goes to `out`.
SHARD_PIXEL void sample_nearest(const std::uint8_t* in, std::int32_t width, std::int32_t height,
                                std::uint32_t channels, Place place, const float* fills,
                                std::uint8_t* out) noexcept {
  const float x = nearest_whole(place.x);
  const float y = nearest_whole(place.y);
  // False for NaN, too.
  const bool inside =
      x >= 0.0F && x <= static_cast<float>(width - 1) && y >= 0.0F && y <= static_cast<float>(height - 1);
  if (!inside) {
    for (std::uint32_t c = 0; c < channels; ++c) out[c] = nearest_byte(fill_of(fills, c));
    return;
  }
  const std::size_t at =
      static_cast<std::size_t>(static_cast<std::int32_t>(y)) * static_cast<std::size_t>(width) +
      static_cast<std::size_t>(static_cast<std::int32_t>(x));
  for (std::uint32_t c = 0; c < channels; ++c) out[c] = in[at * channels + c];
}

SHARD_PIXEL void sample_bilinear(const std::uint8_t* in, std::int32_t width, std::int32_t height,
                                 std::uint32_t channels, Place place, bool fills_border, const float* fills,
                                 std::uint8_t* out) noexcept {
  const bool near_it = place.x > -1.0F && place.x < static_cast<float>(width) && place.y > -1.0F &&
                       place.y < static_cast<float>(height);
  if (!near_it) {
    for (std::uint32_t c = 0; c < channels; ++c) out[c] = nearest_byte(fill_of(fills, c));
    return;
  }
  const float left = floor_of(place.x);
  const float top = floor_of(place.y);
  const float w = place.x - left;
  const float e = 1.0F - w;
  const float n = place.y - top;
  const float s = 1.0F - n;
  const auto x = static_cast<std::int32_t>(left);
  const auto y = static_cast<std::int32_t>(top);
  const bool has_left = x >= 0;
  const bool has_right = x + 1 < width;
  const bool has_top = y >= 0;
  const bool has_bottom = y + 1 < height;
  const float weights[4] = {has_top && has_left ? s * e : 0.0F, has_top && has_right ? s * w : 0.0F,
                            has_bottom && has_left ? n * e : 0.0F, has_bottom && has_right ? n * w : 0.0F};
  const float all = ((weights[0] + weights[1]) + weights[2]) + weights[3];
  const std::int32_t columns[2] = {has_left ? x : 0, has_right ? x + 1 : width - 1};
  const std::int32_t rows[2] = {has_top ? y : 0, has_bottom ? y + 1 : height - 1};
  for (std::uint32_t c = 0; c < channels; ++c) {
    float sum = 0.0F;
    for (int k = 0; k < 4; ++k) {
      const std::size_t at = static_cast<std::size_t>(rows[k / 2]) * static_cast<std::size_t>(width) +
                             static_cast<std::size_t>(columns[k % 2]);
      sum = sum + static_cast<float>(in[at * channels + c]) * weights[k];
    }
    if (fills_border) {
      const float fill = fill_of(fills, c);
      sum = (sum - fill) * all + fill;
    }
    out[c] = nearest_byte(sum);
  }
}

// The bytes of erase_noise: 16 at a time, by Philox4x32-10.
// block: which 16 of the rectangle's bytes, in C order.
SHARD_PIXEL void noise_words(std::uint32_t key0, std::uint32_t key1, std::uint32_t block,
                             std::uint32_t* words) noexcept {
  std::uint32_t c0 = block;
  std::uint32_t c1 = 0;
  std::uint32_t c2 = 0;
  std::uint32_t c3 = 0;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * c0;
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * c2;
    c0 = static_cast<std::uint32_t>(b >> 32U) ^ c1 ^ key0;
    c1 = static_cast<std::uint32_t>(b);
    c2 = static_cast<std::uint32_t>(a >> 32U) ^ c3 ^ key1;
    c3 = static_cast<std::uint32_t>(a);
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

// How an instruction uses the buffers.
SHARD_PIXEL bool swaps(Opcode opcode) noexcept {
  return opcode >= Opcode::sharpness && opcode <= Opcode::shift;
}
SHARD_PIXEL bool is_table(Opcode opcode) noexcept { return opcode <= Opcode::equalize; }

}  // namespace shard::augment
