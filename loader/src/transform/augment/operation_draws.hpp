// The random numbers of one operation for one sample.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "shard/loader/augment.hpp"
#include "transform/philox.hpp"

namespace shard::augment {

// A key of its own for each (seed, view, purpose, number), so that what is drawn for one does not
// depend on whether another one is there. purpose: the index of an operation's kind in Operation,
// or one of those below.
inline constexpr std::uint32_t kDrawCrop = 0x1000;
inline constexpr std::uint32_t kDrawMix = 0x1001;
inline std::uint64_t derived_seed(std::uint64_t seed, std::uint32_t view, std::uint32_t purpose,
                                  std::uint32_t number) noexcept {
  const std::array<std::uint32_t, 4> words =
      philox4x32({view, purpose, number, 0x61756701U},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
  return words[0] | std::uint64_t{words[1]} << 32U;
}

class OperationDraws : public SampleRandom {
 public:
  using SampleRandom::SampleRandom;
  bool chance(double probability) noexcept { return uniform() < probability; }
  double in(const Range& range) noexcept { return range.low + (range.high - range.low) * uniform(); }
  // A factor as it is used: float32.
  float real_in(const Range& range) noexcept { return static_cast<float>(in(range)); }
  // 0 to count - 1 in a random order.
  template <std::size_t count>
  std::array<std::uint32_t, count> order() noexcept {
    std::array<std::uint32_t, count> numbers{};
    for (std::uint32_t i = 0; i < count; ++i) numbers[i] = i;
    for (std::uint32_t i = count; i > 1; --i) std::swap(numbers[i - 1], numbers[below(i)]);
    return numbers;
  }
  // A number of the gamma distribution. Where the shape is small most of them are too small for a double;
  // their logarithms are not.
  struct Gamma {
    double value;
    double log;
  };
  // Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
  Gamma gamma(double shape) noexcept {
    if (shape < 1) {
      const double larger = gamma_from_one(shape + 1);
      const double u = 1 - uniform();
      return {larger * std::pow(u, 1 / shape), std::log(larger) + std::log(u) / shape};
    }
    const double value = gamma_from_one(shape);
    return {value, std::log(value)};
  }
  // Replaces the numbers by their shares of the sum, of which they may be too small for a double.
  template <std::size_t count>
  static std::array<double, count> shares(const std::array<Gamma, count>& numbers,
                                          std::size_t used) noexcept {
    std::array<double, count> result{};
    double sum = 0;
    double highest = numbers[0].log;
    for (std::size_t i = 0; i < used; ++i) {
      sum += result[i] = numbers[i].value;
      highest = std::max(highest, numbers[i].log);
    }
    if (sum < kSmallSum) {
      sum = 0;
      for (std::size_t i = 0; i < used; ++i) sum += result[i] = std::exp(numbers[i].log - highest);
    }
    for (std::size_t i = 0; i < used; ++i) result[i] /= sum;
    return result;
  }
  double beta(double a, double b) noexcept {
    const Gamma x = gamma(a);
    const Gamma y = gamma(b);
    return shares(std::array{x, y}, 2)[0];
  }

 private:
  // Below it, numbers of a sum may have lost digits.
  static constexpr double kSmallSum = 1e-290;

  // shape >= 1.
  double gamma_from_one(double shape) noexcept {
    const double d = shape - 1.0 / 3;
    const double c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = normal();
      const double v = std::pow(1 + c * x, 3);
      const double u = 1 - uniform();
      if (v > 0 && std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
    }
  }

  double normal() noexcept {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
};

// Python's round: ties to even.
inline double round_even(double value) noexcept { return std::nearbyint(value); }

}  // namespace shard::augment
