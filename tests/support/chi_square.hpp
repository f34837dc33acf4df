// Chi-square tests of what is drawn. Seeds are fixed, so a test that has passed once always passes.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

namespace shard::testing {

// A test fails where chance alone would exceed its chi-square in one of 10^7 cases.
constexpr double kChiSquareSigmas = 5.2;

// Chi-square of counts whose expectations are `expected`, as standard deviations of a normal distribution
// (Wilson and Hilferty, "The distribution of chi-square", PNAS, 1931). Cells that expect nothing must be
// empty; `fixed` relations hold between the counts.
inline double chi_square_sigmas(std::span<const double> counts, std::span<const double> expected,
                                double fixed = 1) {
  double chi_square = 0;
  double cells = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (expected[i] == 0) {
      if (counts[i] != 0) return HUGE_VAL;
      continue;
    }
    chi_square += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
    ++cells;
  }
  const double freedom = cells - fixed;
  const double spread = 2 / (9 * freedom);
  return (std::cbrt(chi_square / freedom) - (1 - spread)) / std::sqrt(spread);
}

}  // namespace shard::testing
