// Matrix products of shardbench on a GPU, where there is one.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "commands/matmul/matmul_bench.hpp"
#include "support/programs/bench_calls.hpp"

namespace shard::bench {
namespace {

TEST(GpuMultipliers, AreRight) {
  std::string absent;
  const auto multipliers = make_gpu_multipliers(absent);
  EXPECT_EQ(multipliers.empty(), !absent.empty());
  if (multipliers.empty()) GTEST_SKIP() << absent;
  MatmulOptions options;
  options.sizes = {1, 33, 256, 1000};
  options.repeat = 1;
  options.seconds = 0.001;
  for (const MatmulCase& one : bench_matmul(options, multipliers, kGoOn, kNoProgress)) {
    EXPECT_EQ(one.problem, "") << one.name << ' ' << one.n;
    ASSERT_EQ(one.samples.size(), 1U);
    EXPECT_GT(one.samples[0].load_seconds, 0);
    EXPECT_GT(one.samples[0].store_seconds, 0);
    EXPECT_TRUE(one.samples[0].peak_flops == 0 || one.samples[0].flops < 1.05 * one.samples[0].peak_flops);
  }
}

}  // namespace
}  // namespace shard::bench
