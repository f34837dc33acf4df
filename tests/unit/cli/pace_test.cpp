#include <gtest/gtest.h>

#include "cli/pace.hpp"

namespace shard::cli {
namespace {

TEST(Pace, SaysNothingBeforeItHasWatchedForAWhile) {
  const Pace pace(100.0, 50);
  EXPECT_FALSE(pace.rate(100.0, 51));
  EXPECT_FALSE(pace.rate(100.000001, 75));  // 25 million a second
  EXPECT_FALSE(pace.rate(100.4, 1000));
  ASSERT_TRUE(pace.rate(100.5, 60));
  EXPECT_DOUBLE_EQ(*pace.rate(100.5, 60), 20.0);
  EXPECT_DOUBLE_EQ(*pace.rate(104.0, 50), 0.0);
  EXPECT_FALSE(pace.rate(99.0, 60));
  EXPECT_FALSE(pace.rate(101.0, 40));
}

}  // namespace
}  // namespace shard::cli
