// Permutation: a bijection that scatters; of few items every order and every place equally often.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "base/digest/mix64.hpp"
#include "shard/loader/order.hpp"
#include "support/chi_square.hpp"
#include "support/rounds.hpp"

namespace shard {
namespace {

using testing::chi_square_sigmas;
using testing::kChiSquareSigmas;
using testing::kSanitized;
using Indices = std::vector<std::uint64_t>;

TEST(Permutation, IsABijectionWithItsInverse) {
  for (std::uint64_t n = 1; n <= 2000; ++n) {
    const Permutation permutation(n, n * 0x9E3779B97F4A7C15U);
    std::vector<bool> seen(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t value = permutation(i);
      ASSERT_LT(value, n);
      ASSERT_FALSE(seen[value]) << n;
      seen[value] = true;
      ASSERT_EQ(permutation.inverse(value), i) << n;
    }
  }
}

TEST(Permutation, InvertsItselfForAnyNumberOfSamples) {
  for (std::uint64_t n :
       {std::uint64_t{1'281'167}, (std::uint64_t{1} << 32U) - 1, (std::uint64_t{1} << 32U) + 1,
        std::uint64_t{1} << 40U, (std::uint64_t{1} << 62U) + 12345}) {
    const Permutation permutation(n, 5);
    for (std::uint64_t i = 0; i < 1000; ++i) {
      const std::uint64_t position = i * (n / 1000) + i;
      if (position >= n) continue;
      const std::uint64_t value = permutation(position);
      ASSERT_LT(value, n);
      ASSERT_EQ(permutation.inverse(value), position) << n;
    }
  }
}

TEST(Permutation, DependsOnItsKey) {
  std::set<Indices> sequences;
  for (std::uint64_t key = 0; key < 50; ++key) {
    const Permutation permutation(100, key);
    Indices sequence;
    for (std::uint64_t i = 0; i < 100; ++i) sequence.push_back(permutation(i));
    sequences.insert(sequence);
  }
  EXPECT_EQ(sequences.size(), 50U);
}

// Chi-square over (position, value) pairs: 100 cells, 81 degrees of freedom; 150 is beyond its 99.999th
// percentile.
TEST(Permutation, PutsEachSampleAnywhereEquallyOften) {
  for (std::uint64_t n : {10U, 1000U}) {
    std::vector<double> cells(100);
    constexpr double kKeys = 5000;
    for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(kKeys); ++key) {
      const Permutation permutation(n, key);
      for (std::uint64_t i = 0; i < 10; ++i) ++cells[i * 10 + permutation(i * n / 10) * 10 / n];
    }
    double chi_square = 0;
    for (double count : cells) chi_square += (count - kKeys / 10) * (count - kKeys / 10) / (kKeys / 10);
    EXPECT_LT(chi_square, 150) << n;
  }
}

// Neighbours in the sequence are not neighbours in the data set.
TEST(Permutation, ScattersNeighbours) {
  const std::uint64_t n = 100'000;
  const Permutation permutation(n, 3);
  double mean = 0;
  for (std::uint64_t i = 0; i + 1 < n; ++i)
    mean += std::abs(static_cast<double>(permutation(i)) - static_cast<double>(permutation(i + 1))) /
            static_cast<double>(n);
  EXPECT_NEAR(mean / static_cast<double>(n), 1.0 / 3, 0.01);
}

// Of all orders of n items, how far their counts are from equal.
double sigmas_of_orders(const std::map<Indices, double>& found, std::uint64_t n) {
  Indices order(n);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::vector<double> counts;
  double all = 0;
  do {
    const auto at = found.find(order);
    counts.push_back(at == found.end() ? 0 : at->second);
    all += counts.back();
  } while (std::next_permutation(order.begin(), order.end()));
  return chi_square_sigmas(counts,
                           std::vector<double>(counts.size(), all / static_cast<double>(counts.size())));
}

TEST(PermutationOfFew, GivesEveryOrderEquallyOften) {
  for (const std::uint64_t n : {2U, 3U, 4U, 5U, 6U}) {
    std::map<Indices, double> found;
    for (std::uint64_t key = 0; key < (kSanitized ? 20'000 : 100'000); ++key) {
      const Permutation permutation(n, mix64(key));
      Indices order(n);
      for (std::uint64_t i = 0; i < n; ++i) order[i] = permutation(i);
      ++found[order];
    }
    EXPECT_LT(sigmas_of_orders(found, n), kChiSquareSigmas) << n;
  }
}

TEST(PermutationOfFew, GivesEveryOrderEquallyOftenOverSeedsAndEpochs) {
  for (const std::uint64_t n : {4U, 5U, 6U}) {
    std::map<Indices, double> found;
    OrderOptions options;
    options.batch_size = n;
    for (options.seed = 0; options.seed < (kSanitized ? 200 : 1000); ++options.seed) {
      const Order order(Indices{n}, options);
      BatchIndices batch;
      for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
        order.batch(epoch, 0, batch);
        ++found[batch.samples];
      }
    }
    EXPECT_LT(sigmas_of_orders(found, n), kChiSquareSigmas) << n;
  }
}

// The items of the first and the last positions.
TEST(PermutationOfFew, PutsEveryItemAtEveryPositionEquallyOften) {
  for (std::uint64_t n = 7; n <= 200; ++n) {
    const std::uint64_t keys = kSanitized ? 5 * n : n <= 40 ? 40'000 : 4'000;
    const std::uint64_t positions[] = {0, 1, n / 2, n - 2, n - 1};
    std::vector<std::vector<double>> counts(5, std::vector<double>(n));
    for (std::uint64_t key = 0; key < keys; ++key) {
      const Permutation permutation(n, mix64(key + 1'000'000));
      for (std::size_t i = 0; i < 5; ++i) ++counts[i][permutation(positions[i])];
    }
    const std::vector<double> expected(n, static_cast<double>(keys) / static_cast<double>(n));
    for (std::size_t i = 0; i < 5; ++i)
      EXPECT_LT(chi_square_sigmas(counts[i], expected), kChiSquareSigmas)
          << "position " << positions[i] << " of " << n;
  }
}

// Which two items the first two positions have.
TEST(PermutationOfFew, GivesEveryPairOfItemsEquallyOften) {
  for (const std::uint64_t n : {7U, 8U, 10U, 16U, 17U, 31U, 32U, 33U}) {
    std::vector<double> counts(n * n);
    const double keys = kSanitized ? 20'000 : 100'000;
    for (double key = 0; key < keys; ++key) {
      const Permutation permutation(n, mix64(static_cast<std::uint64_t>(key) + 2'000'000));
      ++counts[permutation(0) * n + permutation(1)];
    }
    std::vector<double> expected(n * n, keys / static_cast<double>(n * (n - 1)));
    for (std::uint64_t i = 0; i < n; ++i) expected[i * n + i] = 0;
    EXPECT_LT(chi_square_sigmas(counts, expected), kChiSquareSigmas) << n;
  }
}

// Of more items it is what it was in every version: batches of large sets do not change.
TEST(Permutation, OfManyItemsIsTheOneOfEveryVersion) {
  const Permutation permutation(1'281'167, 5);
  Indices values;
  for (std::uint64_t i = 0; i < 6; ++i) values.push_back(permutation(i));
  EXPECT_EQ(values, (Indices{872'298, 739'711, 1'193'847, 15'951, 275'947, 481'254}));
  const Permutation smallest(257, 5);
  for (std::uint64_t i = 0; i < 6; ++i) values[i] = smallest(i);
  EXPECT_EQ(values, (Indices{95, 39, 189, 196, 76, 37}));
}

}  // namespace
}  // namespace shard
