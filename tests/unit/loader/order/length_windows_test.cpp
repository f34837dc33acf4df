// Windows of samples sorted by size: every sample once per epoch, the same global batches for any number of
// ranks and from any point on, and less padding.
#include "order/length_windows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "shard/loader/order.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

using Indices = std::vector<std::uint64_t>;

const Indices kShardSamples{100, 1, 37, 250, 80, 64, 5, 90};  // 627 samples
constexpr std::uint64_t kSamples = 627;
constexpr std::uint64_t kGlobal = 24;  // which 1, 2, 3 and 8 ranks divide

// Photographs that lie or stand, and others of all sizes.
std::vector<std::uint32_t> sizes_of(std::uint64_t samples, std::uint64_t seed = 5) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> sizes;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const auto a = static_cast<std::uint32_t>(200 + random() % 300);
    const auto b = static_cast<std::uint32_t>(200 + random() % 300);
    const std::uint32_t kinds[] = {375U << 16U | 500, 500U << 16U | 375, a << 16U | b};
    sizes.push_back(kinds[random() % 3]);
  }
  return sizes;
}

OrderOptions windows_options(OrderMode mode, Tail tail) {
  OrderOptions all;
  all.order = mode;
  all.tail = tail;
  all.batch_size = kGlobal;
  all.window_shards = 2;
  all.seed = 11;
  return all;
}

struct WindowsEpoch {
  std::vector<Indices> samples;
  std::vector<std::vector<std::uint8_t>> mask;
  bool operator==(const WindowsEpoch&) const = default;
};

// Global batches from `first` on: the ranks' batches one after the other.
WindowsEpoch windows_epoch(OrderOptions all, std::uint64_t window, std::uint32_t world, std::uint64_t epoch,
                           std::uint64_t first = 0) {
  WindowsEpoch whole;
  all.world_size = world;
  all.batch_size /= world;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    all.rank = rank;
    const Order order =
        window == 0 ? Order(kShardSamples, all) : Order(kShardSamples, all, sizes_of(kSamples), window);
    whole.samples.resize(order.batches() - first);
    whole.mask.resize(order.batches() - first);
    for (std::uint64_t b = first; b < order.batches(); ++b) {
      BatchIndices batch;
      order.batch(epoch, b, batch);
      if (!all.sampling && all.samples_per_epoch == 0) {
        EXPECT_EQ(batch.draws, batch.samples);
      }
      whole.samples[b - first].insert(whole.samples[b - first].end(), batch.samples.begin(),
                                      batch.samples.end());
      whole.mask[b - first].insert(whole.mask[b - first].end(), batch.mask.begin(), batch.mask.end());
    }
  }
  return whole;
}

// The samples of an epoch whose mask is 1, sorted.
Indices real(const WindowsEpoch& epoch) {
  Indices all;
  for (std::size_t b = 0; b < epoch.samples.size(); ++b)
    for (std::size_t i = 0; i < epoch.samples[b].size(); ++i)
      if (epoch.mask[b][i] != 0) all.push_back(epoch.samples[b][i]);
  std::sort(all.begin(), all.end());
  return all;
}

// Pixels of the padded batches for each pixel of a sample.
double padding(const std::vector<Indices>& batches) {
  const std::vector<std::uint32_t> sizes = sizes_of(kSamples);
  double own = 0;
  double all = 0;
  for (const Indices& batch : batches) {
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    for (const std::uint64_t sample : batch) {
      own += double(sizes[sample] >> 16U) * (sizes[sample] & 0xFFFFU);
      rows = std::max(rows, sizes[sample] >> 16U);
      columns = std::max(columns, sizes[sample] & 0xFFFFU);
    }
    all += double(rows) * columns * static_cast<double>(batch.size());
  }
  return all / own;
}

constexpr OrderMode kWindowModes[] = {OrderMode::sequential, OrderMode::shuffle, OrderMode::windowed};
constexpr Tail kWindowTails[] = {Tail::drop, Tail::pad, Tail::wrap, Tail::short_};

TEST(LengthWindows, GiveTheSameGlobalBatchesForEveryWorldSizeFromAnyBatchOn) {
  for (const OrderMode mode : kWindowModes)
    for (const Tail tail : kWindowTails)
      for (const std::uint64_t window : {1U, 100U, 240U, 5000U}) {
        const WindowsEpoch alone = windows_epoch(windows_options(mode, tail), window, 1, 3);
        EXPECT_EQ(alone.samples.size(), tail == Tail::drop ? 26U : 27U);
        for (const std::uint32_t world : {2U, 3U, 8U})
          ASSERT_EQ(windows_epoch(windows_options(mode, tail), window, world, 3), alone) << world;
        for (const std::uint64_t first : {1U, 9U, 10U, 25U}) {
          const WindowsEpoch rest = windows_epoch(windows_options(mode, tail), window, 2, 3, first);
          const auto from = static_cast<std::ptrdiff_t>(first);
          ASSERT_EQ(rest.samples, std::vector(alone.samples.begin() + from, alone.samples.end())) << first;
        }
      }
}

TEST(LengthWindows, HaveTheSamplesOfTheOrderWindowByWindow) {
  for (const OrderMode mode : kWindowModes)
    for (const Tail tail : kWindowTails) {
      const WindowsEpoch plain = windows_epoch(windows_options(mode, tail), 0, 1, 2);
      const WindowsEpoch sorted =
          windows_epoch(windows_options(mode, tail), 100, 1, 2);  // windows of 5 global batches
      EXPECT_EQ(real(sorted), real(plain)) << "each once, and those that tail drop leaves out";
      for (std::size_t first = 0; first < plain.samples.size(); first += 5) {
        std::multiset<std::uint64_t> before;
        std::multiset<std::uint64_t> after;
        for (std::size_t b = first; b < std::min(first + 5, plain.samples.size()); ++b) {
          EXPECT_EQ(sorted.mask[b], plain.mask[b]);
          before.insert(plain.samples[b].begin(), plain.samples[b].end());
          after.insert(sorted.samples[b].begin(), sorted.samples[b].end());
        }
        EXPECT_EQ(after, before);
      }
      if (tail == Tail::short_) {
        EXPECT_EQ(sorted.samples.back().size(), kSamples % kGlobal);
      }
    }
}

TEST(LengthWindows, LeaveLessToPad) {
  for (const OrderMode mode : kWindowModes) {
    const double plain = padding(windows_epoch(windows_options(mode, Tail::drop), 0, 1, 1).samples);
    const double few = padding(windows_epoch(windows_options(mode, Tail::drop), 5 * kGlobal, 1, 1).samples);
    const double many = padding(windows_epoch(windows_options(mode, Tail::drop), 5000, 1, 1).samples);
    EXPECT_GT(plain, 1.5);
    EXPECT_LT(few, 1.25);
    EXPECT_LT(many, 1.1);
  }
}

TEST(LengthWindows, PutBatchesAndTheirRowsInAnOrderOfEachEpoch) {
  const auto shuffled = windows_options(OrderMode::shuffle, Tail::drop);
  EXPECT_NE(windows_epoch(shuffled, 5000, 1, 1), windows_epoch(shuffled, 5000, 1, 2));
  // Sequential: sorted, and the same in each epoch.
  const auto sequential = windows_options(OrderMode::sequential, Tail::drop);
  EXPECT_EQ(windows_epoch(sequential, 5000, 1, 1), windows_epoch(sequential, 5000, 1, 2));
  const std::vector<std::uint32_t> sizes = sizes_of(kSamples);
  const Indices first = windows_epoch(sequential, 5000, 1, 1).samples.front();
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end(), [&](std::uint64_t a, std::uint64_t b) {
    return (sizes[a] & 0xFFFFU) < (sizes[b] & 0xFFFFU);
  }));
  // Over many epochs, the smallest batch is as often at one place as at another, and so is the smallest row.
  std::vector<int> batches(26, 0);
  std::vector<int> rows(kGlobal, 0);
  std::vector<std::uint32_t> all;  // no two of one size
  for (std::uint32_t i = 0; i < kSamples; ++i)
    all.push_back((200 + i * 37 % 627) << 16U | (200 + i * 101 % 627));
  const Order order(kShardSamples, shuffled, all, 5000);
  const auto pixels = [&](std::uint64_t i) { return (all[i] >> 16U) * (all[i] & 0xFFFFU); };
  for (std::uint64_t epoch = 0; epoch < 520; ++epoch) {
    std::size_t smallest = 0;
    std::uint64_t least = ~std::uint64_t{0};
    for (std::uint64_t b = 0; b < order.batches(); ++b) {
      BatchIndices batch;
      order.batch(epoch, b, batch);
      std::uint64_t sum = 0;
      for (const std::uint64_t sample : batch.samples) sum += pixels(sample);
      if (sum < least) smallest = b;
      least = std::min(least, sum);
      if (b == 0) {
        const auto row = std::min_element(batch.samples.begin(), batch.samples.end(),
                                          [&](auto x, auto y) { return pixels(x) < pixels(y); });
        ++rows[static_cast<std::size_t>(row - batch.samples.begin())];
      }
    }
    ++batches[smallest];
  }
  EXPECT_GT(*std::min_element(batches.begin(), batches.end()), 3);  // 20 each
  EXPECT_LT(*std::max_element(batches.begin(), batches.end()), 50);
  EXPECT_GT(*std::min_element(rows.begin(), rows.end()), 3);
  EXPECT_LT(*std::max_element(rows.begin(), rows.end()), 60);
}

TEST(LengthWindows, KnowWhichShardsTheyComeTo) {
  Indices begin{0};
  for (const std::uint64_t n : kShardSamples) begin.push_back(begin.back() + n);
  for (const OrderMode mode : {OrderMode::sequential, OrderMode::windowed}) {
    OrderOptions all = windows_options(mode, Tail::short_);
    all.world_size = 2;
    all.batch_size = 12;
    all.rank = 1;
    const Order order(kShardSamples, all, sizes_of(kSamples), 100);
    const std::vector<std::uint32_t> walk = order.shards_of(3);
    std::size_t before = 0;
    for (std::uint64_t b = 0; b < order.batches(); ++b) {
      BatchIndices batch;
      order.batch(3, b, batch);
      const Order::Places places = order.places(3, b);
      EXPECT_LE(before, places.first) << "shards before are not needed any more";
      before = places.first;
      for (const std::uint64_t sample : batch.samples) {
        const auto shard = static_cast<std::uint32_t>(std::upper_bound(begin.begin(), begin.end(), sample) -
                                                      begin.begin() - 1);
        const auto from = walk.begin();
        EXPECT_NE(std::find(from + static_cast<std::ptrdiff_t>(places.first),
                            from + static_cast<std::ptrdiff_t>(places.last), shard),
                  from + static_cast<std::ptrdiff_t>(places.last));
      }
    }
  }
}

TEST(LengthWindows, HaveADigestOfTheirSizesAndTheWindow) {
  const OrderOptions all = windows_options(OrderMode::shuffle, Tail::drop);
  std::set<std::uint64_t> digests{Order(kShardSamples, all).digest()};
  digests.insert(Order(kShardSamples, all, sizes_of(kSamples), 100).digest());
  digests.insert(Order(kShardSamples, all, sizes_of(kSamples), 121).digest());
  digests.insert(Order(kShardSamples, all, sizes_of(kSamples, 6), 100).digest());
  EXPECT_EQ(digests.size(), 4U);
  EXPECT_EQ(Order(kShardSamples, all, sizes_of(kSamples), 100).digest(),
            Order(kShardSamples, all, sizes_of(kSamples), 120).digest())
      << "both are five global batches";
  OrderOptions ranks = all;
  ranks.world_size = 3;
  ranks.batch_size = 8;
  EXPECT_TRUE(digests.contains(Order(kShardSamples, ranks, sizes_of(kSamples), 100).digest()));
}

TEST(LengthWindows, SortWhatIsDrawnOfAMix) {
  // Two data sets of 387 and 240 samples, of which the second is drawn three times as often.
  const auto mix = Sampling::mix(std::vector<Sampling::Part>{{387, 1}, {240, 3}});
  for (const Tail tail : kWindowTails)
    for (const std::uint64_t length : {0U, 100U, 2000U}) {
      OrderOptions all = windows_options(OrderMode::shuffle, tail);
      all.sampling = mix;
      all.samples_per_epoch = length;
      const WindowsEpoch plain = windows_epoch(all, 0, 1, 2);
      for (const std::uint64_t window : {100U, 5000U}) {
        const WindowsEpoch alone = windows_epoch(all, window, 1, 2);
        EXPECT_EQ(real(alone), real(plain)) << "as many of each set, and those that tail drop leaves out";
        EXPECT_EQ(alone.mask, plain.mask);
        for (const std::uint32_t world : {2U, 3U, 8U}) ASSERT_EQ(windows_epoch(all, window, world, 2), alone);
        for (const std::uint64_t first : {1U, 3U}) {
          const WindowsEpoch rest = windows_epoch(all, window, 2, 2, first);
          ASSERT_EQ(rest.samples, std::vector(alone.samples.begin() + static_cast<std::ptrdiff_t>(first),
                                              alone.samples.end()));
        }
        if (length == 2000 && window == 5000) {
          EXPECT_LT(padding(alone.samples), padding(plain.samples) * 0.8);
        }
      }
    }
}

// The draws of a sample that comes twice differ, and each goes with its sample.
TEST(LengthWindows, KeepTheDrawsOfWhatTheySort) {
  OrderOptions all = windows_options(OrderMode::shuffle, Tail::short_);
  all.sampling = Sampling::mix(std::vector<Sampling::Part>{{387, 1}, {240, 3}});
  const auto draws_of = [](const Order& order) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> draws;
    for (std::uint64_t b = 0; b < order.batches(); ++b) {
      BatchIndices batch;
      order.batch(4, b, batch);
      for (std::size_t i = 0; i < batch.samples.size(); ++i)
        draws.emplace_back(batch.draws[i], batch.samples[i]);
    }
    std::sort(draws.begin(), draws.end());
    return draws;
  };
  const auto plain = draws_of(Order(kShardSamples, all));
  EXPECT_EQ(draws_of(Order(kShardSamples, all, sizes_of(kSamples), 100)), plain);
  std::set<std::uint64_t> different;
  for (const auto& [draw, sample] : plain) different.insert(draw);
  EXPECT_EQ(different.size(), kSamples);
}

TEST(LengthWindows, NeedBatchesOfAllRanksWithoutCopies) {
  const auto refuses = [](const char* why, auto change) {
    OrderOptions all = windows_options(OrderMode::shuffle, Tail::drop);
    change(all);
    EXPECT_SHARD_ERROR(Order(kShardSamples, all, sizes_of(kSamples), 100), ErrorCode::invalid_argument, why);
  };
  refuses("repeats 1 and partition global, and they are 2 and global",
          [](OrderOptions& o) { o.repeats = 2; });
  refuses("and they are 1 and by_shard", [](OrderOptions& o) { o.partition = Partition::by_shard; });
  EXPECT_SHARD_ERROR(Order(kShardSamples, windows_options(OrderMode::shuffle, Tail::drop), sizes_of(5), 100),
                     ErrorCode::invalid_argument, "the sizes of 5 samples");
}

}  // namespace
}  // namespace shard
