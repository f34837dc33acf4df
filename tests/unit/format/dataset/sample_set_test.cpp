// SampleSet: which samples of many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "format/dataset/sample_set.hpp"
#include "support/rounds.hpp"

namespace shard {
namespace {

using namespace shard::testing;

using Indices = std::vector<std::uint64_t>;

void expect_members(const SampleSet& set, const Indices& expected) {
  ASSERT_EQ(set.size(), expected.size());
  for (std::uint64_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(set[i], expected[i]) << i << " of " << expected.size();
  Indices by_runs;
  std::uint64_t last_end = 0;
  for (auto run = set.run_from(0); run.begin < run.end; run = set.run_from(run.end)) {
    ASSERT_TRUE(by_runs.empty() || run.begin > last_end) << "runs that touch are one run";
    for (std::uint64_t i = run.begin; i < run.end; ++i) by_runs.push_back(i);
    last_end = run.end;
  }
  ASSERT_EQ(by_runs, expected);
}

TEST(SampleSet, FindsEveryMemberWhateverItsDensity) {
  std::mt19937_64 random(number_from("SHARD_TEST_SEED", 1));
  for (std::uint64_t round = 0; round < rounds(300, 30); ++round) {
    const std::uint64_t universe = 1 + random() % (round % 10 == 0 ? 200'000 : 3'000);
    const double density = std::pow(10.0, -static_cast<double>(random() % 5) / 1.3);
    const bool clustered = random() % 2 == 0;
    SampleSet set(universe);
    Indices expected;
    for (std::uint64_t at = 0; at < universe; ++at) {
      if (static_cast<double>(random() % 1'000'000) >= density * 1e6) continue;
      const std::uint64_t end = clustered ? std::min(universe, at + 1 + random() % 90) : at + 1;
      set.add(at, end);
      for (; at < end; ++at) expected.push_back(at);
    }
    set.finish();
    expect_members(set, expected);
    EXPECT_LE(static_cast<double>(set.memory_bytes()), 0.15 * static_cast<double>(universe) + 256)
        << universe;
  }
}

TEST(SampleSet, HoldsAShardOfTheLargestSize) {
  const std::uint64_t universe = std::uint64_t{1} << 32U;
  SampleSet set(universe);
  set.add(0, 3);
  set.add(1'000'000'000, universe - 1);
  set.finish();
  EXPECT_EQ(set.size(), 3 + universe - 1 - 1'000'000'000);
  EXPECT_EQ(set[2], 2U);
  EXPECT_EQ(set[3], 1'000'000'000U);
  EXPECT_EQ(set[set.size() - 1], universe - 2);
  EXPECT_EQ(set.run_from(5).begin, 1'000'000'000U);
  EXPECT_EQ(set.run_from(universe - 2).end, universe - 1);
  EXPECT_EQ(set.run_from(universe - 1).end, 0U);
}

}  // namespace
}  // namespace shard
