#include <gtest/gtest.h>

#include "transform/value_map.hpp"

namespace shard {
namespace {

TEST(ValueMap, FindsALineForTheUsualNormalizationInHalfPrecision) {
  const Normalization imagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  EXPECT_TRUE(make_value_map(DType::f16, imagenet, 3).fused);
  EXPECT_TRUE(make_value_map(DType::bf16, imagenet, 3).fused);
  EXPECT_FALSE(make_value_map(DType::f32, imagenet, 3).fused);
}

}  // namespace
}  // namespace shard
