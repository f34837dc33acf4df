// Samples drawn by weights: as often as they say.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "shard/loader/sampling.hpp"
#include "support/expect_error.hpp"
#include "support/rounds.hpp"

namespace shard {
namespace {

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

TEST(Weighted, RefusesWhatCannotBe) {
  const auto invalid = ErrorCode::invalid_argument;
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

}  // namespace
}  // namespace shard
