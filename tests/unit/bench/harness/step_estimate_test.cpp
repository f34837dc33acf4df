#include <gtest/gtest.h>

#include "harness/step_estimate.hpp"

namespace shard::bench {
namespace {

TEST(StepText, SaysHowLongTheRestTakesOnceAStepIsDone) {
  EXPECT_EQ(step_text("repeat", 0, 5, 100), "repeat 1 of 5");
  EXPECT_EQ(step_text("repeat", 2, 5, 8), "repeat 3 of 5, about 12.0 s left");
  EXPECT_EQ(step_text("size", 5, 5, 8), "size 5 of 5");
}

}  // namespace
}  // namespace shard::bench
