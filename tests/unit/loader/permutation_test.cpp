// Permutation of few items: every order, and every item at every position, equally often.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "base/digest/mix64.hpp"
#include "chi_square.hpp"
#include "rounds.hpp"
#include "shard/loader/order.hpp"

namespace shard {
namespace {

using testing::chi_square_sigmas;
using testing::kChiSquareSigmas;
using testing::kSanitized;
using Indices = std::vector<std::uint64_t>;

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
