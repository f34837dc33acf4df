// Quotas: whole numbers of each group in a block, whose sums are the shares.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "order/quotas.hpp"
#include "support/rounds.hpp"

namespace shard {
namespace {

using testing::rounds;

TEST(Quotas, CountWhatWasDrawnBefore) {
  std::mt19937_64 random(1);
  for (std::uint64_t round = 0; round < rounds(200, 20); ++round) {
    std::vector<double> shares(1 + random() % 30);
    double sum = 0;
    for (double& share : shares) sum += share = static_cast<double>(random() % 4 == 0 ? 0 : random() % 1000);
    if (sum == 0) continue;
    for (double& share : shares) share /= sum;
    const std::uint64_t size = 1 + random() % 1000;
    const Quotas quotas(shares, size);
    std::vector<std::uint64_t> counted(shares.size());
    for (std::uint64_t block = 0; block < 300; ++block) {
      ASSERT_EQ(quotas.begin(block, 0), 0U);
      ASSERT_EQ(quotas.begin(block, shares.size()), size);
      for (std::size_t g = 0; g < shares.size(); ++g) {
        ASSERT_EQ(quotas.before(block, g), counted[g]) << block;
        const std::uint64_t begin = quotas.begin(block, g);
        const std::uint64_t end = quotas.begin(block, g + 1);
        ASSERT_LE(begin, end);
        const double expected = shares[g] * static_cast<double>(size);
        ASSERT_LT(std::abs(static_cast<double>(end - begin) - expected), 1)
            << "not one of the two neighbours";
        for (std::uint64_t slot = begin; slot < end; ++slot) ASSERT_EQ(quotas.group_at(block, slot), g);
        counted[g] += end - begin;
        const double all = expected * static_cast<double>(block + 1);
        ASSERT_LT(std::abs(static_cast<double>(counted[g]) - all), 12) << "the share drifts";
      }
    }
    // Blocks beyond the period of the offsets.
    const std::uint64_t far = (std::uint64_t{5} << 20U) - 1;
    for (std::size_t g = 0; g < shares.size(); ++g)
      ASSERT_EQ(quotas.before(far + 1, g) - quotas.before(far, g),
                quotas.begin(far, g + 1) - quotas.begin(far, g));
  }
}

}  // namespace
}  // namespace shard
