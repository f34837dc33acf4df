#include <gtest/gtest.h>

#include "transport/staging_plan.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

TEST(StagingPlan, KeepsBuffersInTheCacheWhereTwoFit) {
  const auto buffers = [](std::uint64_t batch, std::uint32_t prefetch, std::uint64_t cache) {
    const StagingPlan plan = staging_plan(batch, prefetch, cache);
    return std::pair<std::size_t, bool>{plan.buffers, plan.cached};
  };
  using Expected = std::pair<std::size_t, bool>;
  EXPECT_EQ(buffers(38 * kMiB, 4, 300 * kMiB), Expected(3, true));
  EXPECT_EQ(buffers(38 * kMiB, 1, 300 * kMiB), Expected(2, true));
  EXPECT_EQ(buffers(38 * kMiB, 4, 152 * kMiB), Expected(2, true));
  EXPECT_EQ(buffers(38 * kMiB, 4, 151 * kMiB), Expected(5, false));
  EXPECT_EQ(buffers(38 * kMiB, 4, 0), Expected(5, false));
  EXPECT_EQ(buffers(4 * kMiB, 63, 300 * kMiB), Expected(8, true));  // 32 MiB, however many slots there are
  EXPECT_EQ(buffers(1000, 4, kMiB), Expected(5, true));
}

}  // namespace
}  // namespace shard::testing
