// How many CPUs this process may use.
#include <gtest/gtest.h>
#include <sched.h>

#include "base/system/cpu_count.hpp"

namespace shard::testing {
namespace {

TEST(CpuCount, FollowsTheAffinityOfTheProcess) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(cpu_count(), 1U);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(cpu_count(), 1U);
}

}  // namespace
}  // namespace shard::testing
