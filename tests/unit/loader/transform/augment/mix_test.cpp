// What is drawn for mixup and cutmix.
#include <gtest/gtest.h>

#include <cmath>

#include "shard/loader/mix.hpp"

namespace shard {
namespace {

// Beta(a, a) of a small a is near 0 or 1: between 0.1 and 0.9 in about 2.2 a of all cases,
// and as often on either side.
TEST(DrawMix, SharesOfMixesAreThoseOfTheBetaDistributionForAnyAlpha) {
  const SampleSpec pixels{DType::u8, Layout::nhwc, 3, 1000, 1000};
  for (const double alpha : {1e-6, 0.0005, 0.001, 0.003, 0.01}) {
    MixOptions options;
    options.mixup = alpha;
    constexpr std::uint64_t kPairs = 20'000;
    double between = 0;
    double high = 0;
    for (std::uint64_t pair = 0; pair < kPairs; ++pair) {
      const float share = draw_mix(pixels, options, 5, 0, pair).share;
      between += share > 0.1F && share < 0.9F ? 1 : 0;
      high += share > 0.5F ? 1 : 0;
    }
    // 6 standard deviations.
    EXPECT_LT(between, 2.2 * alpha * kPairs + 6 * std::sqrt(2.2 * alpha * kPairs) + 3) << alpha;
    EXPECT_NEAR(high, 0.5 * kPairs, 6 * 0.5 * std::sqrt(kPairs)) << alpha;
  }
}

}  // namespace
}  // namespace shard
