// Buckets: which one a sample belongs to, lists of them, and batches of one bucket each, in which every
// sample comes once an epoch, for any number of ranks and from any point on.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "order/bucket_order.hpp"
#include "shard/dataset_spec.hpp"
#include "support/chi_square.hpp"
#include "support/expect_error.hpp"
#include "support/rounds.hpp"

namespace shard {
namespace {

using testing::chi_square_sigmas;
using testing::kChiSquareSigmas;
using testing::kSanitized;
using testing::rounds;
using Indices = std::vector<std::uint64_t>;

constexpr std::array kBucketTails{Tail::drop, Tail::pad, Tail::wrap, Tail::short_};
constexpr std::array kBucketModes{OrderMode::sequential, OrderMode::shuffle};

// ---- Buckets ----

std::vector<Bucket> random_buckets(std::mt19937_64& random, std::uint32_t largest) {
  std::set<Bucket> all;
  const std::size_t count = 1 + random() % 40;
  const auto side = [&] { return static_cast<std::uint32_t>(1 + random() % largest); };
  while (all.size() < count) all.insert({side(), side()});
  std::vector<Bucket> buckets(all.begin(), all.end());
  std::shuffle(buckets.begin(), buckets.end(), random);
  return buckets;
}

long double distance(std::uint32_t height, std::uint32_t width, const Bucket& bucket) {
  const auto aspect = [](std::uint32_t h, std::uint32_t w) {
    return std::log(static_cast<long double>(w)) - std::log(static_cast<long double>(h));
  };
  return std::abs(aspect(height, width) - aspect(bucket.height, bucket.width));
}

TEST(BucketOf, IsTheNearestInLogarithmsOfTheAspectRatio) {
  std::mt19937_64 random(1);
  std::uint64_t compared = 0;
  const std::uint64_t samples = rounds(20'000, 2'000);
  for (std::uint64_t round = 0; round < samples; ++round) {
    const std::uint32_t largest = round % 2 == 0 ? 2'048 : std::numeric_limits<std::uint32_t>::max();
    const std::vector<Bucket> buckets = random_buckets(random, largest);
    const auto height = static_cast<std::uint32_t>(1 + random() % largest);
    const auto width = static_cast<std::uint32_t>(1 + random() % largest);
    std::size_t nearest = 0;
    for (std::size_t i = 1; i < buckets.size(); ++i)
      if (distance(height, width, buckets[i]) < distance(height, width, buckets[nearest])) nearest = i;
    bool tied = false;
    for (std::size_t i = 0; i < buckets.size(); ++i)
      tied =
          tied || (i != nearest &&
                   distance(height, width, buckets[i]) - distance(height, width, buckets[nearest]) < 1e-15L);
    if (tied) continue;
    ++compared;
    ASSERT_EQ(bucket_of(height, width, buckets), nearest) << height << " x " << width;
  }
  EXPECT_GT(compared, samples * 9 / 10);
}

TEST(BucketOf, TakesTheLargerOneOfATieAndThenTheFirst) {
  using Buckets = std::vector<Bucket>;
  // The same aspect ratio.
  EXPECT_EQ(bucket_of(300, 200, Buckets{{3, 2}, {6, 4}, {1, 1}}), 1U);
  EXPECT_EQ(bucket_of(300, 200, Buckets{{6, 4}, {3, 2}, {1, 1}}), 0U);
  // As far from the sample on both sides of it.
  EXPECT_EQ(bucket_of(7, 7, Buckets{{512, 256}, {256, 512}}), 0U);
  EXPECT_EQ(bucket_of(7, 7, Buckets{{256, 512}, {512, 256}}), 0U);
  EXPECT_EQ(bucket_of(7, 7, Buckets{{512, 256}, {300, 600}}), 1U);
  EXPECT_EQ(bucket_of(7, 7, Buckets{{600, 300}, {256, 512}}), 0U);
  EXPECT_EQ(bucket_of(10, 60, Buckets{{100, 200}, {10, 180}, {100, 100}}), 0U);  // ratio 6: 2 and 18
  EXPECT_EQ(bucket_of(10, 60, Buckets{{10, 20}, {10, 180}, {100, 100}}), 1U);
  // Areas beyond 32 bits.
  EXPECT_EQ(bucket_of(1, 1, Buckets{{65'536, 65'536}, {65'537, 65'537}, {65'535, 65'535}}), 1U);
}

// Where doubles, whose last place of such a ratio is 2^-53, would see a tie.
TEST(BucketOf, TellsRatiosApartThatDifferByTwoToTheMinus64) {
  constexpr std::uint32_t kLargest = std::numeric_limits<std::uint32_t>::max();
  const Bucket exact{kLargest - 1, kLargest - 2};
  const Bucket near{kLargest, kLargest - 1};  // of a larger area, so that a tie would be seen
  const Bucket same{kLargest - 1, kLargest - 2};
  EXPECT_EQ(bucket_of(exact.height, exact.width, std::vector<Bucket>{near, same}), 1U);
  EXPECT_EQ(bucket_of(exact.height, exact.width, std::vector<Bucket>{same, near}), 0U);
  EXPECT_EQ(bucket_of(near.height, near.width, std::vector<Bucket>{same, near}), 1U);
}

TEST(BucketOf, IsTheSameForASampleOnItsSide) {
  std::mt19937_64 random(2);
  for (std::uint64_t round = 0; round < rounds(5'000, 500); ++round) {
    const std::vector<Bucket> buckets = random_buckets(random, 8);  // with many ties
    std::vector<Bucket> turned;
    for (const Bucket& bucket : buckets) turned.push_back({bucket.width, bucket.height});
    const auto height = static_cast<std::uint32_t>(1 + random() % 12);
    const auto width = static_cast<std::uint32_t>(1 + random() % 12);
    ASSERT_EQ(bucket_of(height, width, buckets), bucket_of(width, height, turned));
  }
}

TEST(Buckets, RefuseWhatCannotBe) {
  const auto invalid = ErrorCode::invalid_argument;
  using Buckets = std::vector<Bucket>;
  check_buckets(Buckets{{2, 3}, {3, 2}, {2, 2}});
  EXPECT_SHARD_ERROR(check_buckets({}), invalid, "empty; it must have at least 1");
  EXPECT_SHARD_ERROR(check_buckets(Buckets{{1, 1}, {0, 7}}), invalid, "bucket 1 is 0 x 7 pixels");
  EXPECT_SHARD_ERROR(check_buckets(Buckets{{7, 0}}), invalid, "both sides must be at least 1");
  EXPECT_SHARD_ERROR(check_buckets(Buckets{{2, 3}, {1, 1}, {2, 3}}), invalid, "2 x 3 is in the list more");
  Buckets many;
  for (std::uint32_t i = 1; i <= 65'537; ++i) many.push_back({1, i});
  EXPECT_SHARD_ERROR(check_buckets(many), invalid, "there are 65537 buckets; there can be at most 65536");
  many.pop_back();
  check_buckets(many);

  EXPECT_SHARD_ERROR(bucket_of(1, 1, {}), invalid, "empty");
  EXPECT_SHARD_ERROR(bucket_of(0, 5, Buckets{{1, 1}}), invalid, "a sample is 0 x 5 pixels");
  EXPECT_SHARD_ERROR(bucket_of(5, 0, Buckets{{1, 1}}), invalid, "at least 1");
  EXPECT_SHARD_ERROR(bucket_of(5, 5, Buckets{{1, 1}, {4, 0}}), invalid, "bucket 1 is 4 x 0");

  EXPECT_SHARD_ERROR(make_buckets(100, 0, 2), invalid, "step is 0 pixels; it must be 1 to 65535");
  EXPECT_SHARD_ERROR(make_buckets(~std::uint64_t{0}, 65'536, 2), invalid, "step is 65536 pixels");
  EXPECT_SHARD_ERROR(make_buckets(100, 1, 0.99), invalid, "max_aspect is 0.99; it must be at least 1");
  EXPECT_SHARD_ERROR(make_buckets(100, 1, std::nan("")), invalid, "max_aspect is nan");
  EXPECT_SHARD_ERROR(make_buckets(0, 1, 2), invalid, "area is 0 pixels");
  EXPECT_SHARD_ERROR(make_buckets(63, 8, 2), invalid, "area is 63 pixels; with step 8 it must be 64 to");
  EXPECT_SHARD_ERROR(make_buckets(65'535ULL * 65'535 + 1, 8, 2), invalid, "to 4294836225");
  EXPECT_SHARD_ERROR(make_buckets(65'535ULL * 65'535, 1, 1e9), invalid, "there can be at most 65536");
}

// Every width and height is tried.
std::set<Bucket> buckets_by_trial(std::uint64_t area, std::uint32_t step, double max_aspect) {
  std::set<Bucket> all;
  const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(area / step, kMaxSide) / step * step);
  for (std::uint32_t width = step; width <= most; width += step) {
    std::uint32_t height = most;
    while (std::uint64_t{height} * width > area) height -= step;
    const double aspect = static_cast<double>(std::max(height, width)) / std::min(height, width);
    if (aspect > max_aspect) continue;
    all.insert({height, width});
    all.insert({width, height});
  }
  std::uint32_t square = most;
  while (std::uint64_t{square} * square > area) square -= step;
  all.insert({square, square});
  return all;
}

TEST(MakeBuckets, HasTheLargestHeightOfEachWidthAndTheLargestWidthOfEachHeight) {
  std::mt19937_64 random(3);
  for (std::uint64_t round = 0; round < rounds(600, 60); ++round) {
    const auto step = static_cast<std::uint32_t>(1 + random() % 70);
    const std::uint64_t area = std::uint64_t{step} * step * (1 + random() % 500) + random() % step;
    const double max_aspect = round % 5 == 0 ? 1 : 1 + static_cast<double>(random() % 1'000) / 100;
    SCOPED_TRACE(::testing::Message() << area << ", step " << step << ", aspect " << max_aspect);
    const std::vector<Bucket> buckets = make_buckets(area, step, max_aspect);
    ASSERT_EQ(std::set<Bucket>(buckets.begin(), buckets.end()), buckets_by_trial(area, step, max_aspect));
    check_buckets(buckets);
    for (std::size_t i = 1; i < buckets.size(); ++i)
      ASSERT_LT(std::uint64_t{buckets[i - 1].width} * buckets[i].height,
                std::uint64_t{buckets[i].width} * buckets[i - 1].height)
          << "sorted by aspect ratio, each another one";
    if (max_aspect == 1) {
      ASSERT_EQ(buckets.size(), 1U) << "the square alone";
    }
  }
}

TEST(MakeBuckets, HasNoSideAboveTheLargest) {
  const std::vector<Bucket> buckets = make_buckets(65'535ULL * 65'535, 1'000, 1e9);
  ASSERT_EQ(std::set<Bucket>(buckets.begin(), buckets.end()),
            buckets_by_trial(65'535ULL * 65'535, 1'000, 1e9));
  for (const Bucket& bucket : buckets) ASSERT_LE(std::max(bucket.height, bucket.width), 65'000U);
  EXPECT_EQ(make_buckets(65'535ULL * 65'535, 65'535, 5), (std::vector<Bucket>{{65'535, 65'535}}));
}

TEST(MakeBuckets, OfKnownAreas) {
  EXPECT_EQ(make_buckets(std::uint64_t{512} * 512, 64, 2),
            (std::vector<Bucket>{{640, 384}, {576, 448}, {512, 512}, {448, 576}, {384, 640}}));
  // What NovelAI publishes for this area, up to its ratio of 2.34 and but for the square, theirs being 512.
  EXPECT_EQ(make_buckets(std::uint64_t{512} * 768, 64, 2.34), (std::vector<Bucket>{{896, 384},
                                                                                   {832, 448},
                                                                                   {768, 512},
                                                                                   {704, 512},
                                                                                   {640, 576},
                                                                                   {576, 576},
                                                                                   {576, 640},
                                                                                   {512, 704},
                                                                                   {512, 768},
                                                                                   {448, 832},
                                                                                   {384, 896}}));
  EXPECT_EQ(make_buckets(1, 1, 1), (std::vector<Bucket>{{1, 1}}));
  EXPECT_EQ(make_buckets(2, 1, 9), (std::vector<Bucket>{{2, 1}, {1, 1}, {1, 2}}));
}

// ---- BucketOrder ----

struct Assigned {
  std::vector<std::uint16_t> assignment;
  Indices global_batches;
  std::uint64_t samples_of(std::size_t bucket) const {
    return static_cast<std::uint64_t>(std::count(assignment.begin(), assignment.end(), bucket));
  }
  std::size_t buckets() const { return global_batches.size(); }
};

// Some buckets have more samples than others, some fewer than a batch, some none.
Assigned random_set(std::mt19937_64& random) {
  Assigned set;
  set.global_batches.resize(1 + random() % 9);
  for (std::uint64_t& size : set.global_batches) size = 1 + random() % (random() % 4 == 0 ? 400 : 40);
  set.assignment.resize(400 + random() % 1'600);
  for (std::uint16_t& bucket : set.assignment) {
    const std::uint64_t buckets = set.buckets();
    bucket =
        static_cast<std::uint16_t>(std::min({random() % (buckets + 2), random() % buckets, buckets - 1}));
  }
  set.assignment[0] = 0;
  set.global_batches[0] = std::min<std::uint64_t>(set.global_batches[0], set.samples_of(0));
  return set;
}

BucketOrderOptions bucket_options(OrderMode mode, Tail tail, std::uint64_t seed = 11) {
  BucketOrderOptions all;
  all.order = mode;
  all.tail = tail;
  all.seed = seed;
  return all;
}

struct GlobalBatch {
  std::size_t bucket = 0;
  Indices samples;
  std::vector<std::uint8_t> mask;
  bool operator==(const GlobalBatch&) const = default;
};

// Global batches of an epoch from `first` on: the ranks' slices one after the other.
std::vector<GlobalBatch> bucket_epoch(const Assigned& set, BucketOrderOptions all, std::uint32_t world,
                                      std::uint64_t epoch, std::uint64_t first = 0,
                                      std::uint64_t last = ~0ULL) {
  std::vector<BucketOrder> ranks;
  all.world_size = world;
  for (all.rank = 0; all.rank < world; ++all.rank)
    ranks.emplace_back(set.assignment, set.global_batches, all);
  std::vector<GlobalBatch> whole;
  for (std::uint64_t index = first; index < std::min(last, ranks[0].batches()); ++index) {
    GlobalBatch joined;
    Indices rows;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      BatchIndices batch;
      const std::size_t bucket = ranks[rank].batch(epoch, index, batch);
      EXPECT_EQ(ranks[rank].batches(), ranks[0].batches());
      EXPECT_EQ(batch.mask.size(), batch.samples.size());
      EXPECT_EQ(batch.draws, batch.samples);
      if (rank == 0) joined.bucket = bucket;
      EXPECT_EQ(bucket, joined.bucket) << "ranks have batches of one bucket at a time";
      joined.samples.insert(joined.samples.end(), batch.samples.begin(), batch.samples.end());
      joined.mask.insert(joined.mask.end(), batch.mask.begin(), batch.mask.end());
      rows.push_back(batch.samples.size());
    }
    const std::uint64_t n = joined.samples.size();
    for (std::uint64_t rank = 0; rank < world; ++rank)
      EXPECT_EQ(rows[rank], (rank + 1) * n / world - rank * n / world) << "slices as in order.hpp";
    whole.push_back(std::move(joined));
  }
  return whole;
}

// Rows of a tail that were filled up: they repeat the beginning of their bucket's sequence, which is that of
// another batch or, if all samples of the bucket are in this one, of the batch itself.
void check_filled(const std::vector<GlobalBatch>& batches, const GlobalBatch& tail, std::uint64_t real) {
  const Indices& rows = tail.samples;
  const auto repeats = [&](const Indices& beginning) {
    for (std::size_t k = real; k < rows.size(); ++k)
      if (rows[k] != beginning[k - real]) return false;
    return true;
  };
  bool found = false;
  for (const GlobalBatch& batch : batches) {
    if (batch.bucket != tail.bucket) continue;
    found = found || repeats(batch.samples);
  }
  EXPECT_TRUE(found) << "bucket " << tail.bucket;
}

void check_epoch(const Assigned& set, const BucketOrderOptions& all, std::uint32_t world,
                 std::uint64_t epoch) {
  const std::vector<GlobalBatch> batches = bucket_epoch(set, all, world, epoch);
  const std::vector<std::uint64_t> left_out = BucketOrder(set.assignment, set.global_batches, all).left_out();
  ASSERT_EQ(left_out.size(), set.buckets());
  // Those that fill up a tail come on top. With wrap their rows are those of pad, which says which they are.
  BucketOrderOptions marked = all;
  if (all.tail == Tail::wrap) marked.tail = Tail::pad;
  const std::vector<GlobalBatch> padded = bucket_epoch(set, marked, world, epoch);
  std::vector<std::uint64_t> times(set.assignment.size());
  std::vector<std::uint64_t> full(set.buckets());
  std::vector<std::uint64_t> tails(set.buckets());
  ASSERT_EQ(batches.size(), padded.size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const GlobalBatch& batch = batches[i];
    const std::uint64_t size = set.global_batches[batch.bucket];
    const std::uint64_t remainder = set.samples_of(batch.bucket) % size;
    for (const std::uint64_t sample : batch.samples) ASSERT_EQ(set.assignment[sample], batch.bucket);
    ASSERT_EQ(batch.samples, padded[i].samples);
    const auto real = static_cast<std::uint64_t>(std::count(padded[i].mask.begin(), padded[i].mask.end(), 1));
    for (std::size_t k = 0; k < batch.samples.size(); ++k) {
      ASSERT_EQ(padded[i].mask[k], k < real ? 1 : 0) << "what fills up is at the end";
      if (all.tail == Tail::wrap) {
        ASSERT_EQ(batch.mask[k], 1);
      }
      if (k < real) ++times[batch.samples[k]];
    }
    if (real == size) {
      ++full[batch.bucket];
      continue;
    }
    ++tails[batch.bucket];
    ASSERT_NE(all.tail, Tail::drop);
    ASSERT_EQ(real, remainder);
    ASSERT_EQ(batch.samples.size(), all.tail == Tail::short_ ? remainder : size);
    if (all.tail != Tail::short_) check_filled(batches, batch, real);
  }
  Indices missing(set.buckets());
  for (std::size_t i = 0; i < times.size(); ++i) {
    ASSERT_LE(times[i], 1U);
    missing[set.assignment[i]] += 1 - times[i];
  }
  for (std::size_t bucket = 0; bucket < set.buckets(); ++bucket) {
    const std::uint64_t samples = set.samples_of(bucket);
    const std::uint64_t remainder = samples % set.global_batches[bucket];
    const bool drops = all.tail == Tail::drop;
    ASSERT_EQ(full[bucket], samples / set.global_batches[bucket]);
    ASSERT_EQ(tails[bucket], !drops && remainder != 0 ? 1U : 0U);
    ASSERT_EQ(missing[bucket], drops ? remainder : 0);
    ASSERT_EQ(left_out[bucket], missing[bucket]);
  }
}

TEST(BucketOrder, DeliversEachSampleOnceInAnEpoch) {
  std::mt19937_64 random(4);
  for (std::uint64_t round = 0; round < rounds(10, 3); ++round) {
    const Assigned set = random_set(random);
    for (const OrderMode mode : kBucketModes)
      for (const Tail tail : kBucketTails)
        for (const std::uint32_t world : {1U, 2U, 3U, 8U}) {
          SCOPED_TRACE(::testing::Message() << "set " << round << ", mode " << static_cast<int>(mode)
                                            << ", tail " << static_cast<int>(tail) << ", world " << world);
          check_epoch(set, bucket_options(mode, tail, round), world, round);
          if (HasFatalFailure()) return;
        }
  }
}

TEST(BucketOrder, GivesTheSameGlobalBatchesForEveryWorldSize) {
  std::mt19937_64 random(5);
  for (std::uint64_t round = 0; round < rounds(10, 3); ++round) {
    const Assigned set = random_set(random);
    for (const OrderMode mode : kBucketModes)
      for (const Tail tail : kBucketTails) {
        const std::vector<GlobalBatch> alone = bucket_epoch(set, bucket_options(mode, tail), 1, round);
        for (const std::uint32_t world : {2U, 3U, 8U})
          ASSERT_EQ(bucket_epoch(set, bucket_options(mode, tail), world, round), alone) << "world " << world;
      }
  }
}

// From any number of delivered global batches on, with any world size, and in any order.
TEST(BucketOrder, GoesOnFromAnyPointAsItWouldHave) {
  std::mt19937_64 random(6);
  const std::uint64_t points = rounds(100, 20);
  for (std::uint64_t round = 0; round < points;) {
    const Assigned set = random_set(random);
    const BucketOrderOptions all =
        bucket_options(kBucketModes[random() % 2], kBucketTails[random() % 4], random());
    const std::uint64_t epoch = random() % 5;
    const std::vector<GlobalBatch> whole = bucket_epoch(set, all, 1, epoch);
    for (int i = 0; i < 5; ++i, ++round) {
      const std::uint64_t first = random() % whole.size();
      const std::uint64_t last = std::min<std::uint64_t>(first + 5, whole.size());
      const std::vector<GlobalBatch> rest =
          bucket_epoch(set, all, 1 + static_cast<std::uint32_t>(random() % 8), epoch, first, last);
      ASSERT_EQ(rest, std::vector<GlobalBatch>(whole.begin() + static_cast<std::ptrdiff_t>(first),
                                               whole.begin() + static_cast<std::ptrdiff_t>(last)));
    }
    const BucketOrder order(set.assignment, set.global_batches, all);
    BatchIndices batch;
    for (std::uint64_t index = order.batches(); index-- > 0;) {
      ASSERT_EQ(order.batch(epoch, index, batch), whole[index].bucket);
      ASSERT_EQ(batch.samples, whole[index].samples);
    }
  }
}

TEST(BucketOrder, HasBatchesInTheOrderOfTheirFirstSamplesWhenSequential) {
  std::mt19937_64 random(7);
  for (const Tail tail : kBucketTails) {
    const Assigned set = random_set(random);
    const std::vector<GlobalBatch> whole =
        bucket_epoch(set, bucket_options(OrderMode::sequential, tail), 1, 0);
    std::vector<Indices> of_bucket(set.buckets());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (i > 0) {
        ASSERT_LT(whole[i - 1].samples[0], whole[i].samples[0]);
      }
      for (std::size_t k = 0; k < whole[i].samples.size(); ++k)
        if (tail != Tail::pad || whole[i].mask[k] == 1)
          of_bucket[whole[i].bucket].push_back(whole[i].samples[k]);
    }
    for (std::size_t bucket = 0; bucket < set.buckets(); ++bucket) {
      Indices& delivered = of_bucket[bucket];
      delivered.resize(std::min<std::size_t>(delivered.size(), set.samples_of(bucket)));  // not the wrapped
      ASSERT_TRUE(std::is_sorted(delivered.begin(), delivered.end()));
    }
    EXPECT_EQ(bucket_epoch(set, bucket_options(OrderMode::sequential, tail, 5), 1, 9), whole)
        << "in every epoch, whatever the seed";
  }
}

TEST(BucketOrder, IsAnotherOneInEachEpochAndForEachSeed) {
  std::mt19937_64 random(8);
  const Assigned set = random_set(random);
  const auto shuffled = [&](std::uint64_t seed, std::uint64_t epoch) {
    return bucket_epoch(set, bucket_options(OrderMode::shuffle, Tail::short_, seed), 1, epoch);
  };
  EXPECT_EQ(shuffled(1, 0), shuffled(1, 0));
  EXPECT_NE(shuffled(1, 0), shuffled(1, 1));
  EXPECT_NE(shuffled(1, 0), shuffled(2, 0));
  EXPECT_NE(shuffled(1, 0), shuffled(0, 1));
}

// ---- Chance ----

// How far the counts of outcomes are from equal. All `possible` ones are expected alike.
double sigmas_of(const std::map<Indices, double>& found, std::size_t possible) {
  if (found.size() > possible) return HUGE_VAL;
  std::vector<double> counts(possible);
  double all = 0;
  std::size_t i = 0;
  for (const auto& entry : found) {
    counts[i++] = entry.second;
    all += entry.second;
  }
  return chi_square_sigmas(counts, std::vector<double>(possible, all / static_cast<double>(possible)));
}

// Samples of an epoch one after the other, with one rank.
Indices sequence_of(const BucketOrder& order, std::uint64_t epoch) {
  Indices all;
  BatchIndices batch;
  for (std::uint64_t index = 0; index < order.batches(); ++index) {
    order.batch(epoch, index, batch);
    all.insert(all.end(), batch.samples.begin(), batch.samples.end());
  }
  return all;
}

const std::uint64_t kDraws = kSanitized ? 20'000 : 120'000;

// Orders inside both buckets and the order of batches at once: 4! x 2! x (two batches of each: 6) outcomes.
TEST(BucketOrder, GivesEachOrderOfSamplesAndBatchesEquallyOften) {
  const std::vector<std::uint16_t> assignment{0, 1, 0, 0, 1, 0};
  const BucketOrder order(assignment, Indices{2, 1}, bucket_options(OrderMode::shuffle, Tail::drop));
  std::map<Indices, double> found;
  for (std::uint64_t epoch = 0; epoch < kDraws; ++epoch) ++found[sequence_of(order, epoch)];
  EXPECT_LT(sigmas_of(found, 24 * 2 * 6), kChiSquareSigmas);
}

// Each order of 3, 2 and 1 batches of three buckets, also where some are tails.
TEST(BucketOrder, MixesTheBatchesOfBucketsUniformly) {
  for (const Tail tail : kBucketTails) {
    const std::uint64_t beyond = tail == Tail::drop ? 1 : 0;  // samples of bucket 0
    std::vector<std::uint16_t> assignment(3 * 5 - 2 + 3 * beyond, 0);
    assignment.insert(assignment.end(), 2 * 300, 1);
    assignment.insert(assignment.end(), 1, 2);
    std::map<Indices, double> found;
    BatchIndices batch;
    const BucketOrder order(assignment, Indices{5, 300, 1}, bucket_options(OrderMode::shuffle, tail));
    ASSERT_EQ(order.batches(), 6U);
    for (std::uint64_t epoch = 0; epoch < kDraws / 12; ++epoch) {
      Indices buckets;
      for (std::uint64_t index = 0; index < 6; ++index) buckets.push_back(order.batch(epoch, index, batch));
      ++found[buckets];
    }
    EXPECT_LT(sigmas_of(found, 60), kChiSquareSigmas) << static_cast<int>(tail);
  }
}

// Of buckets with many samples and of many batches: tenths of what there is at tenths of the epoch.
TEST(BucketOrder, PutsSamplesAndBatchesAnywhereEquallyOften) {
  const std::uint64_t epochs = kSanitized ? 300 : 3'000;
  for (const std::uint64_t samples : {20U, 400U, 1'500U}) {
    // Two buckets that take turns: whole ones as batches, and batches of one sample.
    std::vector<std::uint16_t> assignment(2 * samples);
    for (std::size_t i = 0; i < assignment.size(); ++i) assignment[i] = i % 2;
    const BucketOrder whole(assignment, Indices{samples, samples},
                            bucket_options(OrderMode::shuffle, Tail::drop));
    const BucketOrder single(assignment, Indices{1, 1}, bucket_options(OrderMode::shuffle, Tail::drop));
    ASSERT_EQ(whole.batches(), 2U);
    std::vector<double> places(200);
    std::vector<double> kinds(20);
    BatchIndices batch;
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      for (std::uint64_t index = 0; index < 2; ++index) {
        const std::size_t bucket = whole.batch(epoch, index, batch);
        for (std::uint64_t k = 0; k < 10; ++k)
          ++places[bucket * 100 + k * 10 + batch.samples[k * samples / 10] / 2 * 10 / samples];
      }
      for (std::uint64_t k = 0; k < 10; ++k)
        ++kinds[k * 2 + single.batch(epoch, k * 2 * samples / 10, batch)];
    }
    const auto draws = static_cast<double>(epochs);
    for (const std::size_t bucket : {0U, 1U})
      EXPECT_LT(chi_square_sigmas(
                    std::vector<double>(places.begin() + static_cast<std::ptrdiff_t>(bucket * 100),
                                        places.begin() + static_cast<std::ptrdiff_t>((bucket + 1) * 100)),
                    std::vector<double>(100, draws / 10), 10),
                kChiSquareSigmas)
          << samples << ", bucket " << bucket;
    EXPECT_LT(chi_square_sigmas(kinds, std::vector<double>(20, draws / 2), 10), kChiSquareSigmas) << samples;
  }
}

// The order of one says nothing about that of the other: 6 x 6 outcomes.
TEST(BucketOrder, IsIndependentBetweenBucketsEpochsAndSeeds) {
  std::vector<std::uint16_t> assignment{0, 0, 0, 1, 1, 1};
  std::map<Indices, double> of_buckets;
  std::map<Indices, double> of_epochs;
  std::map<Indices, double> of_seeds;
  std::map<Indices, double> of_sums;
  const std::uint64_t seeds = kDraws / 60;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto of_seed = [&](std::uint64_t at) {
      return BucketOrder(assignment, Indices{3, 3}, bucket_options(OrderMode::shuffle, Tail::drop, at));
    };
    const BucketOrder order = of_seed(seed);
    const BucketOrder next = of_seed(seed + 1);
    // The orders of both buckets, bucket 0 first.
    const auto drawn = [](const BucketOrder& from, std::uint64_t epoch) {
      Indices all = sequence_of(from, epoch);
      if (all[0] >= 3) std::rotate(all.begin(), all.begin() + 3, all.end());
      return all;
    };
    const auto first_of = [](const Indices& a, const Indices& b) {
      return Indices{a[0], a[1], a[2], b[0], b[1], b[2]};
    };
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
      const Indices here = drawn(order, epoch);
      ++of_buckets[here];
      ++of_epochs[first_of(here, drawn(order, epoch + 1))];
      ++of_seeds[first_of(here, drawn(next, epoch))];
      ++of_sums[first_of(drawn(order, epoch + 1), drawn(next, epoch))];
    }
  }
  EXPECT_LT(sigmas_of(of_buckets, 36), kChiSquareSigmas);
  EXPECT_LT(sigmas_of(of_epochs, 36), kChiSquareSigmas);
  EXPECT_LT(sigmas_of(of_seeds, 36), kChiSquareSigmas);
  EXPECT_LT(sigmas_of(of_sums, 36), kChiSquareSigmas);
}

// ---- What a loader keeps ----

// Keys and their purposes never change, so neither does this.
TEST(BucketOrder, IsTheOneOfEveryVersion) {
  std::vector<std::uint16_t> assignment(1'000);
  for (std::size_t i = 0; i < assignment.size(); ++i) assignment[i] = i % 3 == 0 ? 1 : i % 50 == 7 ? 2 : 0;
  const BucketOrder order(assignment, Indices{40, 30, 5},
                          bucket_options(OrderMode::shuffle, Tail::short_, 5));
  Indices buckets;
  Indices samples;
  BatchIndices batch;
  for (std::uint64_t index = 0; index < 12; ++index) {
    buckets.push_back(order.batch(3, index, batch));
    samples.push_back(batch.samples[0]);
  }
  EXPECT_EQ(buckets, (Indices{0, 0, 1, 0, 2, 1, 0, 1, 0, 0, 1, 1}));
  EXPECT_EQ(samples, (Indices{383, 685, 219, 775, 907, 54, 695, 189, 679, 769, 282, 435}));
  EXPECT_EQ(order.digest(), 12681528582222166195U);
}

TEST(BucketOrder, HasADigestOfWhatDeterminesTheSequence) {
  const Assigned set{{0, 1, 0, 0, 2, 1, 0}, {2, 1, 1, 5}};
  const auto digest = [](const Assigned& of, const BucketOrderOptions& all) {
    return BucketOrder(of.assignment, of.global_batches, all).digest();
  };
  const BucketOrderOptions plain = bucket_options(OrderMode::shuffle, Tail::drop);
  const std::uint64_t known = digest(set, plain);

  BucketOrderOptions others = plain;
  others.world_size = 3;
  others.rank = 2;
  others.seed = 99;
  EXPECT_EQ(digest(set, others), known);
  Assigned unused = set;
  unused.global_batches[3] = 6;  // of a bucket without samples
  EXPECT_EQ(digest(unused, plain), known);
  unused.global_batches.pop_back();
  EXPECT_EQ(digest(unused, plain), known);

  std::set<std::uint64_t> all{known};
  for (const Tail tail : {Tail::pad, Tail::wrap, Tail::short_})
    all.insert(digest(set, bucket_options(OrderMode::shuffle, tail)));
  all.insert(digest(set, bucket_options(OrderMode::sequential, Tail::drop)));
  Assigned moved = set;
  std::swap(moved.assignment[0], moved.assignment[1]);
  all.insert(digest(moved, plain));
  Assigned longer = set;
  longer.assignment.push_back(0);
  all.insert(digest(longer, plain));
  Assigned larger = set;
  larger.global_batches = {1, 2, 1, 5};
  all.insert(digest(larger, plain));
  larger.global_batches = {3, 1, 1, 5};
  all.insert(digest(larger, plain));
  EXPECT_EQ(all.size(), 9U);
}

TEST(BucketOrder, LeavesRanksWithoutRowsWhereABatchHasFewer) {
  const Assigned set{{0, 0, 1, 0, 0, 1, 1}, {4, 2}};
  const std::vector<GlobalBatch> alone =
      bucket_epoch(set, bucket_options(OrderMode::shuffle, Tail::short_), 1, 0);
  EXPECT_EQ(alone.size(), 3U);
  EXPECT_EQ(bucket_epoch(set, bucket_options(OrderMode::shuffle, Tail::short_), 8, 0), alone);
}

TEST(BucketOrder, RefusesWhatCannotBe) {
  const auto invalid = ErrorCode::invalid_argument;
  const BucketOrderOptions plain = bucket_options(OrderMode::shuffle, Tail::drop);
  using Assignment = std::vector<std::uint16_t>;
  const auto make = [](const Assignment& assignment, const Indices& batches, const BucketOrderOptions& all) {
    return BucketOrder(assignment, batches, all);
  };
  EXPECT_SHARD_ERROR(make({0}, {}, plain), invalid, "there are 0 buckets; there must be 1 to 65536");
  EXPECT_SHARD_ERROR(make({0}, Indices(65'537, 1), plain), invalid, "there are 65537 buckets");
  EXPECT_EQ(make({65'535}, Indices(65'536, 1), plain).batches(), 1U);
  EXPECT_SHARD_ERROR(make({}, {1}, plain), invalid, "no samples");
  EXPECT_SHARD_ERROR(make({0, 1, 2}, {1, 1}, plain), invalid,
                     "bucket of sample 2 is 2; there are 2 buckets: it must be 0 to 1");
  EXPECT_SHARD_ERROR(make({0, 1}, {1, 0}, plain), invalid,
                     "global batch of bucket 1 is 0 samples; with 1 ranks it must be 1 to 65536");
  EXPECT_SHARD_ERROR(make({0, 1}, {65'537, 1}, plain), invalid, "bucket 0 is 65537 samples");
  BucketOrderOptions all = bucket_options(OrderMode::shuffle, Tail::pad);
  all.world_size = 2;
  EXPECT_EQ(make({0}, {131'072}, all).batches(), 1U);
  EXPECT_SHARD_ERROR(make({0}, {131'073}, all), invalid, "it must be 1 to 131072");
  all.rank = 2;
  EXPECT_SHARD_ERROR(make({0}, {1}, all), invalid, "rank is 2 and world_size 2");
  all.world_size = 0;
  all.rank = 0;
  EXPECT_SHARD_ERROR(make({0}, {1}, all), invalid, "rank is 0 and world_size 0");
  EXPECT_SHARD_ERROR(make({0}, {1}, bucket_options(OrderMode::windowed, Tail::drop)), invalid,
                     "order is windowed; with buckets it must be sequential or shuffle");
  EXPECT_SHARD_ERROR(make({0, 1, 1}, {2, 3}, plain), invalid, "tail 'drop' leaves no batch");
  EXPECT_EQ(make({0, 1, 1}, {2, 3}, bucket_options(OrderMode::shuffle, Tail::short_)).batches(), 2U);

  const BucketOrder order = make({0, 1, 0}, {1, 1}, plain);
  BatchIndices batch;
  EXPECT_SHARD_ERROR(order.batch(0, 3, batch), invalid, "no batch 3; an epoch has batches 0 to 2");
}

// Addresses without memory behind them: the number alone is refused.
TEST(BucketOrder, RefusesMoreSamplesThanItsTableCanName) {
  constexpr std::size_t kSamples = std::size_t{1} << 32U;
  void* const memory = ::mmap(nullptr, kSamples * sizeof(std::uint16_t), PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 8 GiB of addresses";
  const std::span<const std::uint16_t> assignment(static_cast<const std::uint16_t*>(memory), kSamples);
  EXPECT_SHARD_ERROR(BucketOrder(assignment, Indices{1}, {}), ErrorCode::invalid_argument,
                     "4294967296 samples; at most 4294967295");
  ::munmap(memory, kSamples * sizeof(std::uint16_t));
}

}  // namespace
}  // namespace shard
