// The arithmetic of an exact resize, shared by host and CUDA: what Pillow's Image.resize does with 8 bits.
//
//   output x of `out` sees the source pixels i of `box` around its centre c = (x + 1/2) box / out, at most
//   one support s = (half width of the filter) * max(box / out, 1) away:
//   first = int(c - s + 1/2), end = int(c + s + 1/2), inside the box
//
//   weight = filter((i - c + 1/2) / max(box / out, 1)), divided by the sum of the output's weights, and
//   rounded to 22 bits
//   byte = (sum of weight * pixel + 2^21) >> 22, cut to 0 to 255: columns first, then rows
//
// Doubles, each step rounded (these files are built without contraction), so both give the same bits. A box
// of the delivered size is copied: its weights are 1 and 0.
//
// Samples that are not u8 of up to four channels are resized in float32 by the same weights (FloatWeights):
// each is rounded to float32, and sums are those of float_arithmetic.hpp: product of the first tap, then
// plus that of each further one, columns first, then rows, nothing rounded in between. Taps of weight 0 are
// not read, and an axis that keeps its size is copied, so a NaN or an infinity reaches no more than what sees
// it. This is torch's antialiased interpolation (torchvision's resize of tensors), except for rounding.
//
// Source of the algorithm: Pillow, src/libImaging/Resample.c (precompute_coeffs, normalize_coeffs_8bpc).
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "shard/loader/transform.hpp"

namespace shard::exact {

inline constexpr int kWeightBits = 32 - 8 - 2;
// Source pixels that one output sees, at most.
inline constexpr std::uint32_t kMaxTaps = 2048;

SHARD_EXACT constexpr double support_of(ResizeFilter filter) noexcept {
  if (filter == ResizeFilter::box) return 0.5;
  if (filter == ResizeFilter::bilinear) return 1.0;
  return filter == ResizeFilter::bicubic ? 2.0 : 3.0;
}

// sin(x) of 0 <= x < 10, within two units in the last place. The libraries of host and GPU have sines whose
// last bits differ, so this one is for both: it is one of 32 bits more than a weight has.
// Quarter turns are taken off in two parts, of which the first has so few bits that its multiples are exact;
// what is left is at most pi / 4, for which 9 terms of the series do.
SHARD_EXACT constexpr double sine(double x) noexcept {
  constexpr double kQuarter = 0x1.921fb54400000p+0;
  constexpr double kQuarterRest = 0x1.0b4611a626331p-34;
  const auto turns = static_cast<std::int32_t>(x * 0.63661977236758134308 + 0.5);
  const double r = (x - turns * kQuarter) - turns * kQuarterRest;
  const double square = r * r;
  double sum = 0.0;
  double result = 0.0;
  if (turns % 2 == 0) {
    for (std::int32_t n = 17; n >= 3; n -= 2) sum = (-1.0 - sum) * square / (n * (n - 1));
    result = r + r * sum;
  } else {
    for (std::int32_t n = 18; n >= 2; n -= 2) sum = (-1.0 - sum) * square / (n * (n - 1));
    result = 1.0 + sum;
  }
  return turns % 4 >= 2 ? -result : result;
}

// sin(pi x) / (pi x) of 0 <= x <= 3.
SHARD_EXACT constexpr double sinc(double x) noexcept {
  if (x == 0.0) return 1.0;
  x *= 3.14159265358979323846;
  return sine(x) / x;
}

SHARD_EXACT constexpr double filter_value(ResizeFilter filter, double x) noexcept {
  if (filter == ResizeFilter::box) return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
  x = x < 0.0 ? -x : x;
  if (filter == ResizeFilter::bilinear) return x < 1.0 ? 1.0 - x : 0.0;
  if (filter == ResizeFilter::lanczos) return x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
  constexpr double kA = -0.5;
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * kA : 0.0;
}

// The source pixels [first, first + count) of output `x`, and their weights. 1 <= count.
class Taps {
 public:
  SHARD_EXACT constexpr Taps(ResizeFilter filter, std::uint32_t box, std::uint32_t out, std::uint32_t x)
      : filter_(filter) {
    const double scale = static_cast<double>(box) / out;
    const double shrink = scale > 1.0 ? scale : 1.0;
    const double support = support_of(filter) * shrink;
    inverse_ = 1.0 / shrink;
    center_ = (x + 0.5) * scale;
    const auto low = static_cast<std::int32_t>(center_ - support + 0.5);
    const auto high = static_cast<std::int32_t>(center_ + support + 0.5);
    const auto most = static_cast<std::int32_t>(box);
    const std::int32_t begin = low < 0 ? 0 : low;
    const std::int32_t end = high > most ? most : high;
    first = static_cast<std::uint32_t>(begin);
    count = static_cast<std::uint32_t>(end > begin ? end - begin : 0);
    for (std::uint32_t k = 0; k < count; ++k) sum_ += value(k);
  }
  SHARD_EXACT constexpr double part(std::uint32_t k) const noexcept {
    return sum_ != 0.0 ? value(k) / sum_ : value(k);
  }
  // 22 bits below the point, rounded.
  SHARD_EXACT constexpr std::int32_t weight(std::uint32_t k) const noexcept {
    const double fixed = part(k) * (1 << kWeightBits);
    return static_cast<std::int32_t>(fixed < 0.0 ? fixed - 0.5 : fixed + 0.5);
  }

  std::uint32_t first = 0;
  std::uint32_t count = 0;

 private:
  SHARD_EXACT constexpr double value(std::uint32_t k) const noexcept {
    return filter_value(filter_, (static_cast<double>(first + k) - center_ + 0.5) * inverse_);
  }

  ResizeFilter filter_;
  double inverse_ = 1.0;
  double center_ = 0.0;
  double sum_ = 0.0;
};

// The same pixels with weights in float32, some of which may be 0. Firsts and ends never fall.
class FloatWeights {
 public:
  SHARD_EXACT constexpr FloatWeights(ResizeFilter filter, std::uint32_t box, std::uint32_t out,
                                     std::uint32_t x)
      : taps_(filter, box, out, x),
        copied_(box == out),
        first(copied_ ? x : taps_.first),
        count(copied_ ? 1 : taps_.count) {}
  SHARD_EXACT constexpr float weight(std::uint32_t k) const noexcept {
    return copied_ ? 1.0F : static_cast<float>(taps_.part(k));
  }

 private:
  Taps taps_;
  bool copied_;

 public:
  std::uint32_t first;
  std::uint32_t count;
};

// The most pixels that an output of this axis sees.
SHARD_EXACT constexpr std::uint32_t most_taps(ResizeFilter filter, std::uint32_t box,
                                              std::uint32_t out) noexcept {
  const double scale = static_cast<double>(box) / out;
  const double support = support_of(filter) * (scale > 1.0 ? scale : 1.0);
  const auto whole = static_cast<std::uint32_t>(support);
  const std::uint32_t up = whole + (static_cast<double>(whole) < support ? 1 : 0);
  const std::uint32_t taps = 2 * up + 1;
  return taps < box ? taps : box;
}

// A sum that begins with kHalf -> a byte.
inline constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);
SHARD_EXACT constexpr std::uint8_t byte_of(std::int32_t sum) noexcept {
  const std::int32_t value = sum >> kWeightBits;
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

}  // namespace shard::exact
