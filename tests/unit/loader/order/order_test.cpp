// Order: the same global batches for every world size, tails, windows, parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "shard/loader/order.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

using Indices = std::vector<std::uint64_t>;

OrderOptions options(OrderMode mode, Tail tail, std::uint64_t batch_size) {
  OrderOptions all;
  all.order = mode;
  all.tail = tail;
  all.batch_size = batch_size;
  all.window_shards = 2;
  all.seed = 11;
  return all;
}

// Global batches: the ranks' batches one after the other.
struct Epoch {
  std::vector<Indices> samples;
  std::vector<std::vector<std::uint8_t>> mask;
  bool operator==(const Epoch&) const = default;
};

Epoch epoch_of(const Indices& shards, OrderOptions all, std::uint32_t world, std::uint64_t epoch) {
  Epoch whole;
  all.world_size = world;
  all.batch_size /= world;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    all.rank = rank;
    const Order order(shards, all);
    whole.samples.resize(order.batches());
    whole.mask.resize(order.batches());
    for (std::uint64_t b = 0; b < order.batches(); ++b) {
      BatchIndices batch;
      order.batch(epoch, b, batch);
      whole.samples[b].insert(whole.samples[b].end(), batch.samples.begin(), batch.samples.end());
      whole.mask[b].insert(whole.mask[b].end(), batch.mask.begin(), batch.mask.end());
    }
  }
  return whole;
}

Indices joined(const Epoch& epoch) {
  Indices all;
  for (const Indices& batch : epoch.samples) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

Indices sorted(Indices all) {
  std::sort(all.begin(), all.end());
  return all;
}

Indices counting(std::uint64_t n) {
  Indices all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

const Indices kShards{100, 1, 37, 250, 80, 64, 5, 90};  // 627 samples

std::size_t shard_of(std::uint64_t sample) {
  std::uint64_t begin = 0;
  for (std::size_t shard = 0;; ++shard) {
    begin += kShards[shard];
    if (sample < begin) return shard;
  }
}

TEST(Order, GivesTheSameGlobalBatchesForEveryWorldSize) {
  for (OrderMode mode : {OrderMode::sequential, OrderMode::shuffle, OrderMode::windowed}) {
    for (Tail tail : {Tail::drop, Tail::pad, Tail::wrap, Tail::short_}) {
      for (std::uint64_t epoch : {0U, 3U}) {
        const Epoch alone = epoch_of(kShards, options(mode, tail, 16), 1, epoch);
        for (std::uint32_t world : {2U, 4U, 8U})
          ASSERT_EQ(epoch_of(kShards, options(mode, tail, 16), world, epoch), alone) << world;
      }
    }
  }
}

TEST(Order, VisitsEverySampleOnceInAnEpoch) {
  for (OrderMode mode : {OrderMode::sequential, OrderMode::shuffle, OrderMode::windowed}) {
    const Epoch epoch = epoch_of(kShards, options(mode, Tail::pad, 33), 1, 2);  // 627 = 19 x 33
    EXPECT_EQ(sorted(joined(epoch)), counting(627));
  }
}

TEST(Order, IsTheOneOfTheDataSetWhenSequential) {
  EXPECT_EQ(joined(epoch_of(kShards, options(OrderMode::sequential, Tail::drop, 33), 1, 5)), counting(627));
}

TEST(Order, ShufflesEachEpochDifferentlyAndTheSameOnceMore) {
  for (OrderMode mode : {OrderMode::shuffle, OrderMode::windowed}) {
    OrderOptions all = options(mode, Tail::drop, 33);
    const Epoch first = epoch_of(kShards, all, 1, 0);
    EXPECT_EQ(epoch_of(kShards, all, 1, 0), first);
    EXPECT_NE(epoch_of(kShards, all, 1, 1), first);
    all.seed = 12;
    EXPECT_NE(epoch_of(kShards, all, 1, 0), first);
  }
}

TEST(Order, GivesABatchWithoutTheOnesBeforeIt) {
  const Order order(kShards, options(OrderMode::windowed, Tail::drop, 10));
  BatchIndices forward;
  BatchIndices backward;
  std::vector<Indices> all;
  for (std::uint64_t b = 0; b < order.batches(); ++b) {
    order.batch(b % 2, b, forward);
    all.push_back(forward.samples);
  }
  for (std::uint64_t b = order.batches(); b-- > 0;) {
    order.batch(b % 2, b, backward);
    EXPECT_EQ(backward.samples, all[b]);
  }
}

TEST(Order, DropsPadsOrWrapsTheTail) {
  // 627 = 10 x 60 + 27
  for (OrderMode mode : {OrderMode::sequential, OrderMode::shuffle, OrderMode::windowed}) {
    const Epoch dropped = epoch_of(kShards, options(mode, Tail::drop, 60), 1, 1);
    const Epoch padded = epoch_of(kShards, options(mode, Tail::pad, 60), 1, 1);
    const Epoch wrapped = epoch_of(kShards, options(mode, Tail::wrap, 60), 1, 1);
    ASSERT_EQ(dropped.samples.size(), 10U);
    ASSERT_EQ(padded.samples.size(), 11U);
    EXPECT_EQ(wrapped.samples, padded.samples);  // the same rows, marked differently
    EXPECT_TRUE(std::equal(dropped.samples.begin(), dropped.samples.end(), padded.samples.begin()));
    const auto& mask = padded.mask.back();
    EXPECT_EQ(std::count(mask.begin(), mask.begin() + 27, 1), 27);
    EXPECT_EQ(std::count(mask.begin() + 27, mask.end(), 0), 33);
    EXPECT_EQ(std::count(wrapped.mask.back().begin(), wrapped.mask.back().end(), 1), 60);
    // Wrapped rows are the first of the epoch.
    EXPECT_TRUE(
        std::equal(wrapped.samples[10].begin() + 27, wrapped.samples[10].end(), wrapped.samples[0].begin()));
    Indices real = joined(padded);
    real.resize(627);
    EXPECT_EQ(sorted(real), counting(627));
  }
}

// Over all ranks each sample once, whatever is left at the end; the batches of the ranks are as many, and the
// rows of the last ones as even as can be.
TEST(Order, DeliversEachSampleOnceOverAllRanksWithAShortTail) {
  for (Partition partition : {Partition::global, Partition::by_shard}) {
    for (OrderMode mode : {OrderMode::sequential, OrderMode::shuffle, OrderMode::windowed}) {
      for (std::uint32_t world : {1U, 2U, 3U, 5U, 8U}) {
        for (std::uint64_t size : {1U, 2U, 7U, 19U, 33U, 125U, 313U, 700U}) {
          OrderOptions all = options(mode, Tail::short_, size);
          all.partition = partition;
          all.world_size = world;
          SCOPED_TRACE(::testing::Message()
                       << "mode " << static_cast<int>(mode) << ", world " << world << ", batch " << size
                       << ", partition " << static_cast<int>(partition));
          Indices everything;
          std::set<std::uint64_t> batches;
          std::uint64_t fewest = size;
          std::uint64_t most = 0;
          for (all.rank = 0; all.rank < world; ++all.rank) {
            const Order order(kShards, all);
            batches.insert(order.batches());
            BatchIndices batch;
            for (std::uint64_t b = 0; b < order.batches(); ++b) {
              order.batch(4, b, batch);
              ASSERT_LE(batch.samples.size(), size);
              ASSERT_EQ(batch.mask, std::vector<std::uint8_t>(batch.samples.size(), 1));
              if (b + 1 < order.batches()) {
                ASSERT_EQ(batch.samples.size(), size) << "only the last one is short";
              }
              everything.insert(everything.end(), batch.samples.begin(), batch.samples.end());
            }
            fewest = std::min<std::uint64_t>(fewest, batch.samples.size());
            most = std::max<std::uint64_t>(most, batch.samples.size());
          }
          ASSERT_EQ(sorted(everything), counting(627));
          ASSERT_EQ(batches, std::set<std::uint64_t>{(627 + size * world - 1) / (size * world)});
          ASSERT_LE(most - fewest, 1U);
          ASSERT_GE(most, 1U);
        }
      }
    }
  }
}

TEST(Order, CutsTheTailShortWhereItWouldBePadded) {
  for (OrderMode mode : {OrderMode::sequential, OrderMode::shuffle, OrderMode::windowed}) {
    Indices padded = joined(epoch_of(kShards, options(mode, Tail::pad, 48), 1, 1));
    padded.resize(627);
    for (std::uint32_t world : {1U, 2U, 4U, 8U}) {
      const Epoch cut = epoch_of(kShards, options(mode, Tail::short_, 48), world, 1);
      EXPECT_EQ(cut.samples.size(), 14U);
      EXPECT_EQ(cut.samples.back().size(), 3U);  // 627 = 13 x 48 + 3
      EXPECT_EQ(joined(cut), padded) << "the ranks' parts one after the other, " << world;
    }
  }
}

// Two ranks share at most the shard in which the part of the one ends and that of the other begins.
TEST(Order, SharesFewShardsBetweenRanksWithAShortTail) {
  for (OrderMode mode : {OrderMode::sequential, OrderMode::shuffle, OrderMode::windowed}) {
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      OrderOptions all = options(mode, Tail::short_, 20);
      all.partition = Partition::by_shard;
      all.world_size = 3;
      std::size_t shards = 0;
      std::size_t known = 0;
      for (all.rank = 0; all.rank < all.world_size; ++all.rank) {
        const Order order(kShards, all);
        std::set<std::size_t> own;
        for (std::uint64_t b = 0; b < order.batches(); ++b) {
          BatchIndices batch;
          order.batch(epoch, b, batch);
          for (std::uint64_t sample : batch.samples) own.insert(shard_of(sample));
        }
        shards += own.size();
        known += order.shards_from(epoch, 0, kShards.size()).size();
      }
      EXPECT_LE(shards, kShards.size() + all.world_size - 1);
      EXPECT_EQ(known, shards);
    }
  }
}

TEST(Order, HasEmptyLastBatchesWhereFewerSamplesThanRanksAreLeft) {
  OrderOptions all = options(OrderMode::windowed, Tail::short_, 2);
  all.world_size = 4;
  std::vector<std::size_t> rows;
  for (all.rank = 0; all.rank < all.world_size; ++all.rank) {
    const Order order(Indices{5, 4}, all);  // 9 = 8 + 1
    ASSERT_EQ(order.batches(), 2U);
    BatchIndices batch;
    order.batch(0, 1, batch);
    rows.push_back(batch.samples.size());
    EXPECT_EQ(order.shards_from(0, 1, 2).empty(), batch.samples.empty());
  }
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(rows, (std::vector<std::size_t>{0, 0, 0, 1}));
}

TEST(Order, RepeatsSamplesWhenABatchIsLargerThanTheDataSet) {
  const Order order(Indices{3}, options(OrderMode::shuffle, Tail::wrap, 8));
  ASSERT_EQ(order.batches(), 1U);
  BatchIndices batch;
  order.batch(0, 0, batch);
  Indices first(batch.samples.begin(), batch.samples.begin() + 3);
  EXPECT_EQ(sorted(first), counting(3));
  for (std::size_t k = 3; k < 8; ++k) EXPECT_EQ(batch.samples[k], batch.samples[k - 3]);
}

TEST(Order, StaysInsideAWindowOfShards) {
  OrderOptions all = options(OrderMode::windowed, Tail::drop, 1);
  for (std::uint32_t window : {1U, 2U, 3U, 8U, 100U}) {
    all.window_shards = window;
    std::set<std::vector<std::size_t>> sequences;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const Indices samples = joined(epoch_of(kShards, all, 1, epoch));
      EXPECT_EQ(sorted(samples), counting(627));
      // Cut where the shards seen so far are complete: never more of them at once than the window holds.
      std::map<std::size_t, std::uint64_t> open;
      std::vector<std::size_t> closed;
      for (std::uint64_t sample : samples) {
        const std::size_t shard = shard_of(sample);
        ++open[shard];
        ASSERT_LE(open.size(), window);
        const bool complete = std::all_of(
            open.begin(), open.end(), [](const auto& entry) { return entry.second == kShards[entry.first]; });
        if (!complete || (open.size() < window && closed.size() + open.size() < kShards.size())) continue;
        for (const auto& entry : open) closed.push_back(entry.first);
        open.clear();
      }
      EXPECT_TRUE(open.empty());
      sequences.insert(closed);
    }
    if (window <= 3) {
      EXPECT_GT(sequences.size(), 1U) << window;  // shards are permuted each epoch
    }
  }
}

TEST(Order, MixesSamplesInsideAWindow) {
  const Indices shards{1000, 1000};
  OrderOptions all = options(OrderMode::windowed, Tail::drop, 200);
  all.window_shards = 2;
  const Epoch epoch = epoch_of(shards, all, 1, 0);
  for (const Indices& batch : epoch.samples) {
    const auto of_first =
        std::count_if(batch.begin(), batch.end(), [](std::uint64_t sample) { return sample < 1000; });
    EXPECT_NEAR(static_cast<double>(of_first), 100, 40);
  }
}

TEST(Order, GivesEachRankItsOwnShards) {
  for (OrderMode mode : {OrderMode::sequential, OrderMode::shuffle, OrderMode::windowed}) {
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::map<std::size_t, std::uint32_t> owner;
      Indices everything;
      for (std::uint32_t rank = 0; rank < 3; ++rank) {
        OrderOptions all = options(mode, Tail::pad, 20);
        all.partition = Partition::by_shard;
        all.world_size = 3;
        all.rank = rank;
        const Order order(kShards, all);
        std::set<std::size_t> shards;
        for (std::uint64_t b = 0; b < order.batches(); ++b) {
          BatchIndices batch;
          order.batch(epoch, b, batch);
          for (std::size_t k = 0; k < batch.samples.size(); ++k) {
            const std::size_t shard = shard_of(batch.samples[k]);
            shards.insert(shard);
            ASSERT_EQ(owner.try_emplace(shard, rank).first->second, rank) << "shard " << shard;
            if (batch.mask[k] != 0) everything.push_back(batch.samples[k]);
          }
        }
        EXPECT_GE(shards.size(), 1U);
        EXPECT_LE(shards.size(), 3U);
      }
      // No sample twice among the real ones of a rank's own part.
      const Indices all_real = sorted(everything);
      EXPECT_EQ(std::adjacent_find(all_real.begin(), all_real.end()), all_real.end());
    }
  }
}

TEST(Order, KnowsWhichShardsItComesTo) {
  const Indices sizes{7, 5, 11, 3, 9, 13};
  Indices begin{0};
  for (std::uint64_t n : sizes) begin.push_back(begin.back() + n);
  for (Partition partition : {Partition::global, Partition::by_shard})
    for (OrderMode mode : {OrderMode::sequential, OrderMode::shuffle, OrderMode::windowed}) {
      OrderOptions options;
      options.order = mode;
      options.partition = partition;
      options.window_shards = 2;
      options.batch_size = 4;
      options.world_size = 2;
      options.rank = 1;
      const Order order(sizes, options);
      if (mode == OrderMode::shuffle && partition == Partition::global) {
        EXPECT_TRUE(order.shards_from(3, 0, sizes.size()).empty());
        continue;
      }
      const std::vector<std::uint32_t> whole = order.shards_from(3, 0, sizes.size());
      EXPECT_EQ(whole.size(), partition == Partition::global ? 6U : 3U);
      for (std::uint64_t i = 0; i < order.batches(); ++i) {
        const std::vector<std::uint32_t> ahead = order.shards_from(3, i, sizes.size());
        EXPECT_TRUE(std::equal(ahead.rbegin(), ahead.rend(), whole.rbegin())) << "the rest of the walk";
        if (mode == OrderMode::shuffle) {
          EXPECT_EQ(ahead, whole);
        }
        BatchIndices batch;
        order.batch(3, i, batch);
        const bool wraps = partition == Partition::by_shard;  // the rank may have fewer samples than batches
        for (std::uint64_t sample : batch.samples) {
          const auto shard = static_cast<std::uint32_t>(std::upper_bound(begin.begin(), begin.end(), sample) -
                                                        begin.begin() - 1);
          const auto& known = wraps ? whole : ahead;
          EXPECT_NE(std::find(known.begin(), known.end(), shard), known.end()) << "sample " << sample;
        }
      }
    }
}

TEST(Order, RefusesBadOptions) {
  const auto expect_refusal = [](const Indices& shards, const OrderOptions& all, const char* piece) {
    EXPECT_SHARD_ERROR(Order(shards, all), ErrorCode::invalid_argument, piece);
  };
  const OrderOptions good = options(OrderMode::shuffle, Tail::drop, 16);
  EXPECT_NO_THROW(Order(kShards, good));
  expect_refusal({}, good, "no samples");
  expect_refusal({0, 0}, good, "no samples");
  OrderOptions bad = good;
  bad.batch_size = 0;
  expect_refusal(kShards, bad, "batch_size is 0; it must be 1 to 65536");
  bad.batch_size = 65'537;
  expect_refusal(kShards, bad, "batch_size is 65537");
  bad = good;
  bad.world_size = 0;
  expect_refusal(kShards, bad, "rank is 0 and world_size 0");
  bad.world_size = 4;
  bad.rank = 4;
  expect_refusal(kShards, bad, "rank is 4 and world_size 4: rank must be 0 to world_size - 1");
  bad = good;
  bad.order = OrderMode::windowed;
  bad.window_shards = 0;
  expect_refusal(kShards, bad, "window_shards is 0");
  bad = good;
  bad.partition = Partition::by_shard;
  bad.world_size = 9;
  expect_refusal(kShards, bad, "needs a shard for each of the 9 ranks; there are 8");
  bad = good;
  bad.batch_size = 628;
  expect_refusal(kShards, bad, "leaves no batch: 627 samples");
  bad.tail = Tail::short_;
  EXPECT_NO_THROW(Order(kShards, bad));
  bad.tail = static_cast<Tail>(4);
  expect_refusal(kShards, bad, "tail is 4; it must be drop (0), pad (1), wrap (2) or short (3)");
}

TEST(Order, EmptyShardsAreDealtToNobody) {
  const std::vector<std::uint64_t> samples{0, 3, 0, 0, 5, 0, 2, 0};
  for (const Tail tail : {Tail::pad, Tail::wrap, Tail::short_}) {
    OrderOptions by_shard;
    by_shard.partition = Partition::by_shard;
    by_shard.batch_size = 2;
    by_shard.world_size = 3;
    by_shard.tail = tail;
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
      std::set<std::uint64_t> seen;
      for (by_shard.rank = 0; by_shard.rank < 3; ++by_shard.rank) {
        const Order order(samples, by_shard);
        for (std::uint64_t index = 0; index < order.batches(); ++index) {
          BatchIndices batch;
          order.batch(epoch, index, batch);
          seen.insert(batch.samples.begin(), batch.samples.end());
        }
      }
      EXPECT_GE(seen.size(), 3U);
      if (tail == Tail::short_) {
        EXPECT_EQ(seen.size(), 10U);
      }
    }
    by_shard.rank = 0;
    by_shard.world_size = 4;
    EXPECT_SHARD_ERROR(Order(samples, by_shard), ErrorCode::invalid_argument,
                       "each of the 4 ranks; there are 3");
  }
}

TEST(Order, RefusesABatchBeyondTheEpoch) {
  const Order order(kShards, options(OrderMode::shuffle, Tail::drop, 60));
  BatchIndices batch;
  EXPECT_SHARD_ERROR(order.batch(0, 10, batch), ErrorCode::invalid_argument, "batch 10 of 10");
}

TEST(Order, KeepsNothingForEachSample) {
  const Indices shards(1000, 1'000'000'000);  // 10^12 samples
  const Order order(shards, options(OrderMode::shuffle, Tail::drop, 256));
  BatchIndices batch;
  order.batch(7, order.batches() - 1, batch);
  EXPECT_EQ(std::set<std::uint64_t>(batch.samples.begin(), batch.samples.end()).size(), 256U);
  for (std::uint64_t sample : batch.samples) EXPECT_LT(sample, 1'000'000'000'000U);
}

TEST(OrderDigest, TellsApartWhatGivesOtherSequences) {
  const std::vector<std::uint64_t> shards{100, 60, 40};
  const std::vector<std::uint64_t> others{100, 40, 60};
  OrderOptions options;
  options.batch_size = 8;
  const auto digest = [&](const std::vector<std::uint64_t>& sizes) { return Order(sizes, options).digest(); };
  const std::uint64_t first = digest(shards);
  EXPECT_EQ(digest(others), first);  // a global shuffle does not depend on the shards
  // Neither do rank, world size and seed belong to it: these are fields of their own, or may change.
  options.batch_size = 4;
  options.world_size = 2;
  options.rank = 1;
  options.window_shards = 2;
  EXPECT_EQ(digest(shards), first);
  std::set<std::uint64_t> seen{first};
  for (const Tail tail : {Tail::pad, Tail::wrap, Tail::short_}) {
    options.tail = tail;
    EXPECT_TRUE(seen.insert(digest(shards)).second);
  }
  options.tail = Tail::drop;
  options.order = OrderMode::sequential;
  EXPECT_TRUE(seen.insert(digest(shards)).second);
  options.order = OrderMode::windowed;
  EXPECT_TRUE(seen.insert(digest(shards)).second);
  EXPECT_TRUE(seen.insert(digest(others)).second);
  options.window_shards = 3;
  EXPECT_TRUE(seen.insert(digest(shards)).second);
  options.order = OrderMode::shuffle;
  options.partition = Partition::by_shard;
  EXPECT_TRUE(seen.insert(digest(shards)).second);
  EXPECT_TRUE(seen.insert(digest(others)).second);
}

}  // namespace
}  // namespace shard
