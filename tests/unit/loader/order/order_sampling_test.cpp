// Order with a sampling: repeats, and that ranks and resume change nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "shard/loader/order.hpp"
#include "shard/loader/sampling.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

using Indices = std::vector<std::uint64_t>;

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
