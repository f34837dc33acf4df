// KeySet: keys that were seen.
#include <gtest/gtest.h>

#include <string>

#include "convert/plan/key_set.hpp"

namespace shard::convert {
namespace {

TEST(KeySetTest, KeepsEveryKeyOnce) {
  KeySet keys;
  EXPECT_FALSE(keys.contains("0"));
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(keys.insert(std::to_string(i)));
  for (int i = 0; i < 10'000; ++i) EXPECT_FALSE(keys.insert(std::to_string(i)));
  EXPECT_TRUE(keys.contains("9999"));
  EXPECT_FALSE(keys.contains("10000"));
}

}  // namespace
}  // namespace shard::convert
