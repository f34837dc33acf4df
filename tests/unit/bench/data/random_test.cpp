// Random numbers by seed, item and purpose.
#include <gtest/gtest.h>

#include "data/random.hpp"

namespace shard::bench {
namespace {

TEST(Random, IsAFunctionOfSeedItemAndPurpose) {
  const std::uint64_t first = Random(1, 2, 3).bits();
  EXPECT_EQ(Random(1, 2, 3).bits(), first);
  EXPECT_NE(Random(2, 2, 3).bits(), first);
  EXPECT_NE(Random(1, 3, 3).bits(), first);
  EXPECT_NE(Random(1, 2, 4).bits(), first);
}

TEST(Random, StaysInItsBoundsWithTheMomentsItStates) {
  Random random(0, 0, 0);
  double sum = 0;
  double squares = 0;
  for (int k = 0; k < 100'000; ++k) {
    ASSERT_LT(random.below(7), 7U);
    const float u = random.uniform();
    ASSERT_TRUE(u >= 0.0F && u < 1.0F);
    const double b = random.bell();
    sum += b;
    squares += b * b;
  }
  EXPECT_NEAR(sum / 1e5, 0.0, 0.02);
  EXPECT_NEAR(squares / 1e5, 1.0, 0.02);
}

}  // namespace
}  // namespace shard::bench
