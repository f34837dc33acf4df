// The filters of a resize as functions, and where an output's taps lie: what Pillow's precompute_coeffs
// computes. Included by files that are compiled with -ffp-contract=off: each step of the arithmetic rounds.
//
// Source of the algorithm: Pillow, src/libImaging/Resample.c (filters, support,
// rounding to 22 bits) and Geometry.c (nearest).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "image/resample/filter.hpp"

namespace shard::image {

struct BoxKernel {
  static constexpr double kSupport = 0.5;
  static double value(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }
};

struct BilinearKernel {
  static constexpr double kSupport = 1.0;
  static double value(double x) {
    x = std::abs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
  }
};

struct BicubicKernel {
  static constexpr double kSupport = 2.0;
  static double value(double x) {
    constexpr double kA = -0.5;
    x = std::abs(x);
    if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
    return 0.0;
  }
};

struct LanczosKernel {
  static constexpr double kSupport = 3.0;
  static double sinc(double x) {
    if (x == 0.0) return 1.0;
    x *= std::numbers::pi;
    return std::sin(x) / x;
  }
  static double value(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }
};

// Calls `work` with the kernel of a filter that has one: not nearest.
template <class Work>
decltype(auto) with_kernel(Filter filter, const Work& work) {
  switch (filter) {
    case Filter::box:
      return work(BoxKernel{});
    case Filter::bilinear:
      return work(BilinearKernel{});
    case Filter::bicubic:
      return work(BicubicKernel{});
    case Filter::lanczos:
    case Filter::nearest:
      break;
  }
  return work(LanczosKernel{});
}

// The taps of one output: half-open source positions, and the value of each before they are divided by their
// sum.
template <class Kernel>
class OutputTaps {
 public:
  OutputTaps(std::uint32_t source, std::uint32_t resized, std::uint32_t output) {
    const double scale = static_cast<double>(static_cast<float>(source)) / resized;
    const double filter_scale = std::max(scale, 1.0);
    const double support = Kernel::kSupport * filter_scale;
    inverse_ = 1.0 / filter_scale;
    center_ = (output + 0.5) * scale;
    first_ = std::max<std::int64_t>(static_cast<std::int64_t>(center_ - support + 0.5), 0);
    last_ =
        std::max(std::min<std::int64_t>(static_cast<std::int64_t>(center_ + support + 0.5), source), first_);
  }
  std::uint32_t first() const noexcept { return static_cast<std::uint32_t>(first_); }
  std::uint32_t last() const noexcept { return static_cast<std::uint32_t>(last_); }
  double value(std::uint32_t position) const {
    return Kernel::value((static_cast<double>(position) - center_ + 0.5) * inverse_);
  }

 private:
  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  double center_ = 0;
  double inverse_ = 0;
};

// Filter::nearest: the source positions of the outputs [begin, begin + count). As in Pillow, the centres are
// a running sum, whose rounding decides where one lies between two pixels.
inline std::vector<std::uint32_t> nearest_positions(std::uint32_t source, std::uint32_t resized,
                                                    std::uint32_t begin, std::uint32_t count) {
  const double scale = static_cast<double>(static_cast<float>(source)) / resized;
  double center = scale * 0.5;
  std::vector<std::uint32_t> positions;
  positions.reserve(count);
  for (std::uint32_t output = 0; output < begin + count; ++output, center += scale)
    if (output >= begin) positions.push_back(std::min(static_cast<std::uint32_t>(center), source - 1));
  return positions;
}

// A tap's coefficient in fixed point, given the sum of the values of all taps of its output.
inline std::int32_t fixed_coefficient(double value, double sum) {
  constexpr double kOne = 1 << kPrecisionBits;
  const double fixed = (sum != 0.0 ? value / sum : value) * kOne;
  return static_cast<std::int32_t>(std::copysign(0.5, fixed) + fixed);
}

}  // namespace shard::image
