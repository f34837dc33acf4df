// Buckets whose samples are drawn by a sampling: how often what is drawn, for any number of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "order/bucket_order.hpp"
#include "shard/loader/sampling.hpp"
#include "support/chi_square.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

using testing::chi_square_sigmas;
using testing::kChiSquareSigmas;
using AnySampling = std::shared_ptr<const Sampling>;

constexpr std::uint64_t kOfPosition = std::uint64_t{1} << 63U;

// Samples in buckets and groups; a group is not spread evenly over the buckets.
struct DrawnSet {
  std::vector<std::uint16_t> bucket_of;
  std::vector<std::uint32_t> group_of;
  std::vector<double> weights;
  std::vector<std::uint64_t> global_batches{8, 5, 12, 3};

  explicit DrawnSet(std::uint64_t samples = 600, std::uint32_t groups = 3) {
    std::mt19937_64 random(5);
    for (std::uint64_t i = 0; i < samples; ++i) {
      group_of.push_back(static_cast<std::uint32_t>(random() % groups));
      bucket_of.push_back(static_cast<std::uint16_t>(std::min<std::uint64_t>(random() % 4, 1 + i % 3)));
      weights.push_back(static_cast<double>(random() % 5));
    }
  }
  BucketOrder order(const AnySampling& sampling, std::uint64_t draws, Tail tail = Tail::short_,
                    std::uint32_t rank = 0, std::uint32_t world = 1, std::uint64_t seed = 3) const {
    return {bucket_of, global_batches, {rank, world, OrderMode::shuffle, tail, seed, sampling, draws}};
  }
  // Each kind, and whether a sample can come more than once in an epoch of as many draws as samples.
  std::vector<std::pair<AnySampling, bool>> samplings() const {
    const std::vector<double> proportions{0.7, 0.1, 0.2};
    std::vector<double> positive = weights;
    for (double& weight : positive) weight += 1;
    return {{Sampling::grouped(group_of, proportions), true},
            {Sampling::grouped(group_of, std::vector<double>(3, 1.0)), true},
            {Sampling::weighted(weights), true},
            {Sampling::weighted(positive, false), false},
            {Sampling::uniform(bucket_of.size(), true), true},
            {Sampling::uniform(bucket_of.size(), false), false}};
  }
};

struct DrawnEpoch {
  std::vector<std::vector<std::uint64_t>> batches;
  std::vector<std::uint64_t> draws;
};

DrawnEpoch drawn_epoch(const BucketOrder& order, std::uint64_t epoch) {
  DrawnEpoch all;
  for (std::uint64_t index = 0; index < order.batches(); ++index) {
    BatchIndices batch;
    static_cast<void>(order.batch(epoch, index, batch));
    all.batches.push_back(batch.samples);
    all.draws.insert(all.draws.end(), batch.draws.begin(), batch.draws.end());
  }
  return all;
}

std::vector<double> bucket_counts(const BucketOrder& order, std::size_t samples, std::uint64_t epochs) {
  std::vector<double> counts(samples);
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch)
    for (const auto& batch : drawn_epoch(order, epoch).batches)
      for (const std::uint64_t sample : batch) ++counts[sample];
  return counts;
}

TEST(BucketDraws, AreSoManyInEachEpochAndEachPositionHasItsOwn) {
  const DrawnSet set;
  for (const auto& [sampling, repeats] : set.samplings())
    for (const std::uint64_t draws : {std::uint64_t{600}, std::uint64_t{77}, std::uint64_t{1}}) {
      const BucketOrder order = set.order(sampling, draws);
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        const DrawnEpoch all = drawn_epoch(order, epoch);
        EXPECT_EQ(all.draws.size(), draws);
        const std::set<std::uint64_t> different(all.draws.begin(), all.draws.end());
        EXPECT_EQ(different.size(), draws);
        EXPECT_GE(*different.begin(), kOfPosition);
        EXPECT_LT(*different.rbegin(), kOfPosition + draws);
        std::set<std::uint64_t> samples;
        for (const auto& batch : all.batches) {
          samples.insert(batch.begin(), batch.end());
          for (const std::uint64_t sample : batch)
            EXPECT_EQ(set.bucket_of[sample], set.bucket_of[batch[0]]) << "a batch is of one bucket";
        }
        if (!repeats) {
          EXPECT_EQ(samples.size(), draws) << "no sample twice";
        }
      }
    }
}

TEST(BucketDraws, AreTheSameGlobalBatchesForEveryWorldSize) {
  const DrawnSet set;
  for (const auto& [sampling, repeats] : set.samplings())
    for (const Tail tail : {Tail::drop, Tail::pad, Tail::wrap, Tail::short_}) {
      const DrawnEpoch alone = drawn_epoch(set.order(sampling, 600, tail), 2);
      for (const std::uint32_t world : {2U, 3U, 8U}) {
        std::vector<std::vector<std::uint64_t>> joined(alone.batches.size());
        for (std::uint32_t rank = 0; rank < world; ++rank) {
          const DrawnEpoch of_rank = drawn_epoch(set.order(sampling, 600, tail, rank, world), 2);
          ASSERT_EQ(of_rank.batches.size(), joined.size());
          for (std::size_t i = 0; i < joined.size(); ++i)
            joined[i].insert(joined[i].end(), of_rank.batches[i].begin(), of_rank.batches[i].end());
        }
        EXPECT_EQ(joined, alone.batches);
      }
    }
}

TEST(BucketDraws, KeepTheProportionsOfGroups) {
  const DrawnSet set;
  const std::vector<double> proportions{0.7, 0.1, 0.2};
  const BucketOrder order = set.order(Sampling::grouped(set.group_of, proportions), 600);
  const std::vector<double> counts = bucket_counts(order, 600, 50);
  std::vector<double> of_group(3);
  for (std::size_t i = 0; i < counts.size(); ++i) of_group[set.group_of[i]] += counts[i];
  for (std::size_t group = 0; group < 3; ++group)
    EXPECT_NEAR(of_group[group], 50 * 600 * proportions[group], 50 * 3.0) << group;
  // Within a group and a bucket each sample is drawn as often as another, but for a pass that is under way.
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::pair<double, double>> range;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    auto& [least, most] =
        range.try_emplace({set.group_of[i], set.bucket_of[i]}, counts[i], counts[i]).first->second;
    least = std::min(least, counts[i]);
    most = std::max(most, counts[i]);
  }
  EXPECT_GE(range.size(), 10U);
  for (const auto& [part, of] : range) EXPECT_LE(of.second - of.first, 1) << part.first << " " << part.second;
}

TEST(BucketDraws, FollowWeights) {
  const DrawnSet set;
  for (const AnySampling& sampling : {Sampling::weighted(set.weights), Sampling::uniform(600, true)}) {
    std::vector<double> expected = set.weights;
    if (sampling->digest() == Sampling::uniform(600, true)->digest()) expected.assign(600, 1.0);
    const std::vector<double> counts = bucket_counts(set.order(sampling, 600), 600, 400);
    const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
    // A bucket has a whole number of draws, which is its share but for one of some hundred.
    std::vector<double> drawn(4);
    std::vector<double> share(4);
    for (std::size_t i = 0; i < 600; ++i) {
      drawn[set.bucket_of[i]] += counts[i];
      share[set.bucket_of[i]] += expected[i] / sum;
    }
    for (std::size_t bucket = 0; bucket < 4; ++bucket)
      EXPECT_LE(std::abs(drawn[bucket] / 400 - share[bucket] * 600), 1.0);
    for (std::size_t i = 0; i < 600; ++i)
      expected[i] *= drawn[set.bucket_of[i]] / (share[set.bucket_of[i]] * sum);
    EXPECT_LT(chi_square_sigmas(counts, expected, 4), kChiSquareSigmas);
  }
}

// Seeds and epochs draw anew, and buckets not in step: the draws of two buckets of the same weights differ.
TEST(BucketDraws, AreIndependentOfEachOther) {
  DrawnSet set(400);
  for (std::size_t i = 0; i < 400; ++i) set.bucket_of[i] = static_cast<std::uint16_t>(i % 2);
  set.global_batches = {200, 200};
  const AnySampling uniform = Sampling::uniform(400, true);
  std::set<std::vector<std::uint64_t>> different;
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
      for (std::vector<std::uint64_t>& batch :
           drawn_epoch(set.order(uniform, 400, Tail::short_, 0, 1, seed), epoch).batches) {
        for (std::uint64_t& sample : batch) sample /= 2;  // its number in its bucket
        different.insert(batch);
      }
  EXPECT_EQ(different.size(), 18U);
}

// What a bucket cannot give without replacement, the others do.
TEST(BucketDraws, GoToOthersWhereABucketHasTooFew) {
  DrawnSet set(30);
  std::vector<double> weights(30, 1.0);
  for (std::size_t i = 0; i < 30; ++i) {
    set.bucket_of[i] = i < 4 ? 0 : 1;
    if (i < 4) weights[i] = 100;
  }
  const BucketOrder order = set.order(Sampling::weighted(weights, false), 20);
  const DrawnEpoch all = drawn_epoch(order, 0);
  EXPECT_EQ(all.draws.size(), 20U);
  std::set<std::uint64_t> samples;
  for (const auto& batch : all.batches) samples.insert(batch.begin(), batch.end());
  EXPECT_EQ(samples.size(), 20U);
  EXPECT_EQ(*std::next(samples.begin(), 3), 3U) << "all four of the heavy ones";
  EXPECT_SHARD_ERROR(set.order(Sampling::weighted(weights, false), 31), ErrorCode::invalid_argument,
                     "an epoch draws 31 samples, but only 30 have a weight above 0");
}

TEST(BucketDraws, AreNoneOfBucketsWithoutWeight) {
  DrawnSet set;
  for (std::size_t i = 0; i < 600; ++i)
    if (set.bucket_of[i] == 2) set.weights[i] = 0;
  for (const bool replacement : {true, false}) {
    const BucketOrder order = set.order(Sampling::weighted(set.weights, replacement), 200);
    for (const auto& batch : drawn_epoch(order, 0).batches)
      for (const std::uint64_t sample : batch) EXPECT_NE(set.bucket_of[sample], 2);
  }
}

TEST(BucketDraws, AreInTheDigest) {
  const DrawnSet set;
  std::set<std::uint64_t> digests{set.order(nullptr, 0).digest()};
  for (const auto& [sampling, repeats] : set.samplings()) digests.insert(set.order(sampling, 600).digest());
  digests.insert(set.order(Sampling::uniform(600, true), 599).digest());
  EXPECT_EQ(digests.size(), 8U);
  EXPECT_SHARD_ERROR(
      BucketOrder(set.bucket_of, set.global_batches,
                  {0, 1, OrderMode::sequential, Tail::drop, 0, Sampling::uniform(600, true), 600}),
      ErrorCode::invalid_argument, "order is sequential; with a sampling it must be shuffle");
}

// Of all kinds: the proportions of the parts add up to 1, and a part's sampling is the whole one's for it.
TEST(SamplingSplit, HasThePartsOfTheWhole) {
  const DrawnSet set;
  for (const auto& [sampling, repeats] : set.samplings()) {
    const std::vector<Sampling::Share> shares = sampling->split(set.bucket_of, 5);
    ASSERT_EQ(shares.size(), 5U);
    double sum = 0;
    for (std::size_t part = 0; part < 5; ++part) {
      sum += shares[part].proportion;
      const auto samples = std::count(set.bucket_of.begin(), set.bucket_of.end(), part);
      if (samples == 0) {
        EXPECT_FALSE(shares[part].sampling);
        EXPECT_EQ(shares[part].proportion, 0);
      } else {
        EXPECT_EQ(shares[part].sampling->samples(), static_cast<std::uint64_t>(samples));
      }
    }
    EXPECT_NEAR(sum, 1, 1e-9);
  }
  // Weights that an alias table has given back.
  const std::vector<double> weights{1, 0, 3, 5, 0, 7};
  const std::vector<std::uint16_t> part_of{0, 0, 0, 1, 1, 1};
  const auto shares = Sampling::weighted(weights)->split(part_of, 2);
  EXPECT_NEAR(shares[0].proportion, 0.25, 1e-12);
  std::vector<double> counts(3);
  std::vector<std::uint64_t> positions(40'000);
  std::iota(positions.begin(), positions.end(), 0U);
  shares[1].sampling->draw({1, 0, positions.size()}, positions);
  for (const std::uint64_t sample : positions) ++counts[sample];
  EXPECT_LT(chi_square_sigmas(counts, std::vector<double>{40'000 * 5 / 12.0, 0, 40'000 * 7 / 12.0}),
            kChiSquareSigmas);
}

}  // namespace
}  // namespace shard
