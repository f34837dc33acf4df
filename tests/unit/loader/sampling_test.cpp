// Sampling: proportions, frequencies, repeats, and that ranks and resume change nothing.
#include "shard/loader/sampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "expect_error.hpp"
#include "order/quotas.hpp"
#include "rounds.hpp"
#include "shard/loader/order.hpp"

namespace shard {
namespace {

using testing::rounds;
using Indices = std::vector<std::uint64_t>;

Indices counting(std::uint64_t n) {
  Indices all(n);
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  return all;
}

Indices drawn(const Sampling& sampling, std::uint64_t epoch, std::uint64_t length, std::uint64_t seed = 3) {
  Indices positions = counting(length);
  sampling.draw({seed, epoch, length}, positions);
  return positions;
}

// By how many standard deviations chi-squared is off what is expected of `probability`.
double chi_squared_sigmas(const std::map<std::uint64_t, double>& counts,
                          const std::vector<double>& probability, double draws) {
  double chi_squared = 0;
  double cells = 0;
  for (std::uint64_t i = 0; i < probability.size(); ++i) {
    const double expected = probability[i] * draws;
    const auto found = counts.find(i);
    const double count = found == counts.end() ? 0 : found->second;
    if (expected == 0) {
      EXPECT_EQ(count, 0) << "sample " << i << " has no weight";
      continue;
    }
    chi_squared += (count - expected) * (count - expected) / expected;
    ++cells;
  }
  return (chi_squared - (cells - 1)) / std::sqrt(2 * (cells - 1));
}

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

TEST(Mix, HasExactProportionsInEveryBlockOfThousand) {
  const std::vector<Sampling::Part> parts{{700, 0.7}, {5'000, 0.2}, {0, 0}, {33, 0.1}};
  const auto mix = Sampling::mix(parts);
  EXPECT_EQ(mix->samples(), 5'733U);
  for (const std::uint64_t epoch : {0U, 1U, 77U}) {
    const Indices all = drawn(*mix, epoch, 20'000);
    for (std::size_t block = 0; block < 20; ++block) {
      std::array<std::uint64_t, 3> counts{};
      for (std::size_t i = 0; i < 1000; ++i) {
        const std::uint64_t sample = all[block * 1000 + i];
        ++counts[sample < 700 ? 0 : sample < 5'700 ? 1 : 2];
      }
      EXPECT_EQ(counts, (std::array<std::uint64_t, 3>{700, 200, 100})) << block;
    }
  }
}

// Over several epochs of any length: no member is drawn again before all of its group were.
TEST(Mix, VisitsEveryMemberBeforeOneComesAgain) {
  std::mt19937_64 random(2);
  for (std::uint64_t round = 0; round < rounds(60, 10); ++round) {
    std::vector<Sampling::Part> parts(1 + random() % 5);
    for (auto& part : parts) part = {1 + random() % 400, 0.05 + static_cast<double>(random() % 100)};
    const auto mix = Sampling::mix(parts);
    const std::uint64_t length = 1 + random() % 2'500;
    std::vector<std::uint64_t> times(mix->samples());
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
      for (const std::uint64_t sample : drawn(*mix, epoch, length)) ++times[sample];
      std::uint64_t first = 0;
      for (const auto& part : parts) {
        const auto [least, most] =
            std::minmax_element(times.begin() + static_cast<std::ptrdiff_t>(first),
                                times.begin() + static_cast<std::ptrdiff_t>(first + part.samples));
        ASSERT_LE(*most, *least + 1) << "round " << round << " epoch " << epoch;
        first += part.samples;
      }
    }
  }
}

TEST(Mix, TakesAnyEpochOfAnyLength) {
  const auto mix = Sampling::mix(std::vector<Sampling::Part>{{3, 1}, {1'000'000'000'000, 2}});
  for (const std::uint64_t epoch : {std::uint64_t{0}, std::uint64_t{1} << 40U, ~std::uint64_t{0}})
    for (const std::uint64_t length : {std::uint64_t{1}, std::uint64_t{999}, std::uint64_t{1} << 48U}) {
      Indices positions{0, length - 1, length / 2};
      mix->draw({1, epoch, length}, positions);
      for (const std::uint64_t sample : positions) EXPECT_LT(sample, mix->samples());
    }
}

TEST(Mix, DependsOnSeedAndEpoch) {
  const auto mix = Sampling::mix(std::vector<Sampling::Part>{{500, 1}, {500, 1}});
  EXPECT_EQ(drawn(*mix, 4, 3'000, 9), drawn(*mix, 4, 3'000, 9));
  EXPECT_NE(drawn(*mix, 4, 3'000, 9), drawn(*mix, 5, 3'000, 9));
  EXPECT_NE(drawn(*mix, 4, 3'000, 9), drawn(*mix, 4, 3'000, 8));
}

TEST(Grouped, IsTheSameForRunsAndForSamplesInNoOrder) {
  std::mt19937_64 random(5);
  for (const bool scattered : {false, true}) {
    std::vector<std::uint32_t> groups(3'000);
    for (std::size_t i = 0; i < groups.size(); ++i)
      groups[i] = scattered ? static_cast<std::uint32_t>(random() % 7) : static_cast<std::uint32_t>(i / 500);
    const std::size_t count = scattered ? 7 : 6;
    const auto balanced = Sampling::grouped(groups, std::vector<double>(count, 1.0));
    std::vector<std::uint64_t> counts(count);
    const Indices all = drawn(*balanced, 0, 42'000);
    std::set<std::uint64_t> seen(all.begin(), all.end());
    EXPECT_EQ(seen.size(), groups.size());
    for (const std::uint64_t sample : all) ++counts[groups[sample]];
    for (const std::uint64_t of_group : counts)
      EXPECT_NEAR(static_cast<double>(of_group), 42'000.0 / static_cast<double>(count), 12);
  }
}

TEST(Weighted, DrawsEachSampleAsOftenAsItsWeightSays) {
  std::mt19937_64 random(6);
  for (const std::uint64_t samples : {1U, 2U, 10U, 1000U}) {
    std::vector<double> weights(samples);
    for (double& weight : weights) weight = static_cast<double>(random() % 5 == 0 ? 0 : random() % 1000);
    weights[0] = 5;
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto sampling = Sampling::weighted(weights);
    std::map<std::uint64_t, double> counts;
    constexpr std::uint64_t kEpochs = 10;
    const std::uint64_t length = testing::kSanitized ? 20'000 : 1'000'000;
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch)
      for (const std::uint64_t sample : drawn(*sampling, epoch, length)) ++counts[sample];
    for (double& weight : weights) weight /= sum;
    if (samples == 1) {
      EXPECT_EQ(counts.size(), 1U);
      continue;
    }
    EXPECT_LT(std::abs(chi_squared_sigmas(counts, weights, static_cast<double>(length) * kEpochs)), 3)
        << samples;
  }
}

TEST(Weighted, WithoutReplacementDrawsNoSampleTwice) {
  std::vector<double> weights{8, 1, 0, 1, 2, 4};
  const auto sampling = Sampling::weighted(weights, false);
  EXPECT_EQ(sampling->longest_epoch(), 5U);
  std::map<std::uint64_t, double> first;
  const std::uint64_t epochs = testing::kSanitized ? 2'000 : 40'000;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const Indices all = drawn(*sampling, epoch, 3);
    EXPECT_EQ(std::set<std::uint64_t>(all.begin(), all.end()).size(), 3U);
    ++first[all[0]];
  }
  for (double& weight : weights) weight /= 16;
  EXPECT_LT(std::abs(chi_squared_sigmas(first, weights, static_cast<double>(epochs))),
            3);  // as a single draw
  const Indices all = drawn(*sampling, 0, 5);
  EXPECT_EQ(std::set<std::uint64_t>(all.begin(), all.end()), (std::set<std::uint64_t>{0, 1, 3, 4, 5}));
}

TEST(UniformSampling, DrawsEverySampleAlike) {
  const auto sampling = Sampling::uniform(1000, true);
  std::map<std::uint64_t, double> counts;
  for (const std::uint64_t sample : drawn(*sampling, 0, 1'000'000)) ++counts[sample];
  EXPECT_LT(std::abs(chi_squared_sigmas(counts, std::vector<double>(1000, 0.001), 1e6)), 3);
}

TEST(Samplings, RefuseWhatCannotBe) {
  using Part = Sampling::Part;
  const auto mix = [](const std::vector<Part>& parts) { return Sampling::mix(parts); };
  const auto invalid = ErrorCode::invalid_argument;
  EXPECT_SHARD_ERROR(mix({}), invalid, "0 groups add up to 0");
  EXPECT_SHARD_ERROR(mix({{5, 0}}), invalid, "add up to 0");
  EXPECT_SHARD_ERROR(mix({{5, 1}, {5, -0.5}}), invalid, "group 1 is -0.5");
  EXPECT_SHARD_ERROR(mix({{5, std::nan("")}}), invalid, "group 0 is nan");
  EXPECT_SHARD_ERROR(mix({{5, INFINITY}}), invalid, "group 0 is inf");
  EXPECT_SHARD_ERROR(mix({{5, 1}, {0, 1}}), invalid, "group 1 has the proportion 1, but no samples");
  EXPECT_SHARD_ERROR(Sampling::grouped(std::vector<std::uint32_t>{0, 2}, std::vector<double>{1, 1}), invalid,
                     "sample 1 is of group 2");
  for (const bool replacement : {true, false}) {
    const auto weighted = [&](const std::vector<double>& weights) {
      return Sampling::weighted(weights, replacement);
    };
    EXPECT_SHARD_ERROR(weighted({}), invalid, "no weights");
    EXPECT_SHARD_ERROR(weighted({0, 0}), invalid, "all 2 weights are 0");
    EXPECT_SHARD_ERROR(weighted({1, -1}), invalid, "weight of sample 1 is -1");
    EXPECT_SHARD_ERROR(weighted({std::nan("")}), invalid, "weight of sample 0 is nan");
    EXPECT_SHARD_ERROR(weighted({1e308, 1e308}), invalid, "scale them down");
  }
}

OrderOptions order_options(std::uint64_t global, std::uint32_t world, std::uint32_t rank) {
  OrderOptions options;
  options.batch_size = global / world;
  options.world_size = world;
  options.rank = rank;
  options.seed = 11;
  return options;
}

TEST(SampledOrder, RefusesWhatCannotBe) {
  const Indices shards{100, 60};
  const auto invalid = ErrorCode::invalid_argument;
  OrderOptions options = order_options(8, 1, 0);
  options.repeats = 3;
  EXPECT_SHARD_ERROR(Order(shards, options), invalid, "repeats is 3");
  options.repeats = 0;
  EXPECT_SHARD_ERROR(Order(shards, options), invalid, "repeats is 0");
  options.repeats = 2;
  options.order = OrderMode::windowed;
  EXPECT_SHARD_ERROR(Order(shards, options), invalid, "need order shuffle");
  options = order_options(8, 1, 0);
  options.sampling = Sampling::uniform(161, true);
  EXPECT_SHARD_ERROR(Order(shards, options), invalid, "for 161 samples; the data set has 160");
  std::vector<double> weights(160, 0.0);
  std::fill(weights.begin(), weights.begin() + 50, 1.0);
  options.sampling = Sampling::weighted(weights, false);
  EXPECT_SHARD_ERROR(Order(shards, options), invalid, "an epoch draws 160 samples, but only 50");
  options.samples_per_epoch = 50;
  EXPECT_EQ(Order(shards, options).batches(), 6U);
  options.samples_per_epoch = ~std::uint64_t{0};
  EXPECT_SHARD_ERROR(Order(shards, options), invalid, "at most 281474976710656");
  options.samples_per_epoch = 7;
  EXPECT_SHARD_ERROR(Order(shards, options), invalid, "7 samples are fewer");
}

TEST(SampledOrder, GoesThroughAllSamplesBeforeOneComesAgain) {
  OrderOptions options = order_options(8, 1, 0);
  options.samples_per_epoch = 40;
  const Order order(Indices{100, 60}, options);
  EXPECT_EQ(order.batches(), 5U);
  std::set<std::uint64_t> seen;
  BatchIndices batch;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch)
    for (std::uint64_t i = 0; i < 5; ++i) {
      order.batch(epoch, i, batch);
      for (const std::uint64_t sample : batch.samples) EXPECT_TRUE(seen.insert(sample).second);
    }
  EXPECT_EQ(seen.size(), 160U);
}

TEST(SampledOrder, RepeatsEachSampleInTheGlobalBatch) {
  for (const std::uint32_t repeats : {2U, 3U}) {
    for (const Tail tail : {Tail::drop, Tail::short_}) {
      std::set<std::uint64_t> draws;
      std::set<std::uint64_t> unique;
      std::vector<std::map<std::uint64_t, std::uint32_t>> times;
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        OrderOptions options = order_options(24, 2, rank);
        options.repeats = repeats;
        options.tail = tail;
        const Order order(Indices{100, 61}, options);
        times.resize(order.batches());
        for (std::uint64_t i = 0; i < order.batches(); ++i) {
          BatchIndices batch;
          order.batch(0, i, batch);
          for (const std::uint64_t sample : batch.samples) ++times[i][sample];
          for (const std::uint64_t draw : batch.draws)
            EXPECT_TRUE(draws.insert(draw).second) << "the same augmentation";
          const std::set<std::uint64_t> own(batch.samples.begin(), batch.samples.end());
          if (repeats == 2) {
            EXPECT_EQ(own.size(), batch.samples.size()) << "copies go to different ranks";
          }
        }
      }
      for (std::size_t i = 0; i < times.size(); ++i) {
        const bool last = tail == Tail::short_ && i + 1 == times.size();
        for (const auto& [sample, count] : times[i]) {
          if (!last) {
            EXPECT_EQ(count, repeats);
          }
          EXPECT_LE(count, repeats);
          EXPECT_TRUE(unique.insert(sample).second) << "drawn in two batches";
        }
      }
    }
  }
}

// Ranks put together are the batch of one rank, for every sampling and world size.
TEST(SampledOrder, DoesNotDependOnTheWorldSize) {
  std::mt19937_64 random(7);
  const Indices shards{90, 41, 30};
  std::vector<double> weights(161);
  for (double& weight : weights) weight = static_cast<double>(1 + random() % 9);
  const std::vector<Sampling::Part> parts{{100, 0.3}, {61, 0.7}};
  const std::shared_ptr<const Sampling> samplings[] = {
      nullptr, Sampling::mix(parts), Sampling::weighted(weights), Sampling::weighted(weights, false),
      Sampling::uniform(161, true)};
  for (const auto& sampling : samplings)
    for (const Tail tail : {Tail::drop, Tail::pad, Tail::wrap, Tail::short_})
      for (const std::uint64_t length : {0U, 70U, 161U}) {
        std::vector<std::vector<BatchIndices>> by_world;
        for (const std::uint32_t world : {1U, 2U, 4U, 8U}) {
          std::vector<BatchIndices> global;
          for (std::uint32_t rank = 0; rank < world; ++rank) {
            OrderOptions options = order_options(16, world, rank);
            options.sampling = sampling;
            options.samples_per_epoch = length;
            options.tail = tail;
            options.repeats = length == 70 ? 2 : 1;
            const Order order(shards, options);
            global.resize(order.batches());
            for (std::uint64_t i = 0; i < order.batches(); ++i) {
              BatchIndices batch;
              order.batch(2, i, batch);
              const auto add = [](auto& all, const auto& part) {
                all.insert(all.end(), part.begin(), part.end());
              };
              add(global[i].samples, batch.samples);
              add(global[i].mask, batch.mask);
              add(global[i].draws, batch.draws);
            }
          }
          by_world.push_back(global);
        }
        for (const auto& global : by_world) {
          ASSERT_EQ(global.size(), by_world[0].size());
          for (std::size_t i = 0; i < global.size(); ++i) {
            EXPECT_EQ(global[i].samples, by_world[0][i].samples);
            EXPECT_EQ(global[i].mask, by_world[0][i].mask);
            EXPECT_EQ(global[i].draws, by_world[0][i].draws);
          }
        }
      }
}

TEST(SampledOrder, HasADigestOfWhatIsDrawn) {
  std::set<std::uint64_t> digests;
  OrderOptions options = order_options(8, 1, 0);
  const auto add = [&] { digests.insert(Order(Indices{100, 60}, options).digest()); };
  add();
  options.samples_per_epoch = 100;
  add();
  options.repeats = 2;
  add();
  options.sampling = Sampling::uniform(160, true);
  add();
  options.sampling = Sampling::mix(std::vector<Sampling::Part>{{80, 1}, {80, 2}});
  add();
  options.sampling = Sampling::mix(std::vector<Sampling::Part>{{80, 2}, {80, 1}});
  add();
  options.sampling = Sampling::weighted(std::vector<double>(160, 1.0));
  add();
  options.sampling = Sampling::weighted(std::vector<double>(160, 1.0), false);
  add();
  EXPECT_EQ(digests.size(), 8U);
}

}  // namespace
}  // namespace shard
