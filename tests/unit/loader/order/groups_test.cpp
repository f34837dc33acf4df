// Groups: how often each is drawn, which come together in a batch, and passes through their members.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "shard/loader/order.hpp"
#include "shard/loader/sampling.hpp"
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

// `members` samples of each group, one after the other.
std::shared_ptr<const Sampling> equal_groups(std::uint64_t groups, std::uint64_t members) {
  return Sampling::mix(std::vector<Sampling::Part>(groups, {members, 1.0}));
}

Indices drawn(const Sampling& sampling, std::uint64_t epoch, std::uint64_t length, std::uint64_t seed = 3) {
  Indices positions(length);
  std::iota(positions.begin(), positions.end(), std::uint64_t{0});
  sampling.draw({seed, epoch, length}, positions);
  return positions;
}

// Pairs of groups within batches of 250, positions i and i + 125 of the batch:
// chi-square over the kinds of both groups.
template <class Kind>
double sigmas_of_pairs(const Sampling& sampling, std::uint64_t length,
                       const std::vector<double>& share_of_kind, const Kind& kind_of) {
  const std::uint64_t kinds = share_of_kind.size();
  std::vector<double> counts(kinds * kinds);
  double pairs = 0;
  for (std::uint64_t epoch = 0; epoch < (kSanitized ? 10 : 40); ++epoch)
    for (std::uint64_t batch = 0; batch < 4; ++batch) {
      Indices positions(250);
      std::iota(positions.begin(), positions.end(), batch * (length / 250 - 1) / 3 * 250);
      sampling.draw({3, epoch, length}, positions);
      for (std::uint64_t k = 0; k < 125; ++k, ++pairs)
        ++counts[kind_of(positions[k]) * kinds + kind_of(positions[k + 125])];
    }
  std::vector<double> expected;
  for (const double a : share_of_kind)
    for (const double b : share_of_kind) expected.push_back(pairs * a * b);
  return chi_square_sigmas(counts, expected);
}

TEST(Groups, OfEqualSharesMeetInBatchesAsOftenAsTheyShould) {
  for (const std::uint64_t groups : {2U, 10U, 300U, 700U, 1'000U, 1'500U, 2'000U, 100'000U}) {
    const std::uint64_t members = groups > 10'000 ? 1 : 50;
    const auto sampling = equal_groups(groups, members);
    for (const std::uint64_t length : {groups * members, groups * members + 1'250, std::uint64_t{1'000}}) {
      if (length < 1'000) continue;
      const std::uint64_t kinds = groups == 2 ? 2 : 10;
      const std::vector<double> share(kinds, 1.0 / static_cast<double>(kinds));
      EXPECT_LT(sigmas_of_pairs(*sampling, length, share,
                                [&](std::uint64_t sample) { return sample / members % kinds; }),
                kChiSquareSigmas)
          << groups << " groups, remainders, epochs of " << length;
      EXPECT_LT(sigmas_of_pairs(*sampling, length, share,
                                [&](std::uint64_t sample) { return sample / members * kinds / groups; }),
                kChiSquareSigmas)
          << groups << " groups, ranges, epochs of " << length;
    }
  }
}

TEST(Groups, OfOtherSharesMeetInBatchesAsOftenAsTheyShould) {
  for (const std::uint64_t groups : {10U, 400U, 2'000U, 20'000U}) {
    std::vector<Sampling::Part> parts;
    std::vector<double> share_of_kind(4);
    double sum = 0;
    for (std::uint64_t g = 0; g < groups; ++g) {
      parts.push_back({20, 0.9 + 0.2 * static_cast<double>(g % 3)});
      share_of_kind[g % 4] += parts.back().proportion;
      sum += parts.back().proportion;
    }
    for (double& share : share_of_kind) share /= sum;
    for (const std::uint64_t length : {groups * 200, groups * 200 + 250, std::uint64_t{1'000}})
      EXPECT_LT(sigmas_of_pairs(*Sampling::mix(parts), length, share_of_kind,
                                [](std::uint64_t sample) { return sample / 20 % 4; }),
                kChiSquareSigmas)
          << groups << " groups, epochs of " << length;
  }
}

// Pairs of positions of one batch that have one group, in all batches of 250 of some epochs, beside the
// number by chance, in standard deviations: blocks with each group once have none.
double sigmas_of_meeting(const Sampling& sampling, std::uint64_t members, std::uint64_t length) {
  double pairs = 0;
  double meeting = 0;
  for (std::uint64_t epoch = 0; epoch < (kSanitized ? 1 : 3); ++epoch) {
    const Indices all = drawn(sampling, epoch, length);
    for (std::size_t begin = 0; begin + 250 <= all.size(); begin += 250) {
      std::vector<std::uint64_t> groups;
      for (std::size_t i = begin; i < begin + 250; ++i) groups.push_back(all[i] / members);
      std::sort(groups.begin(), groups.end());
      pairs += 250.0 * 249 / 2;
      for (std::size_t i = 0, same = 0; i < groups.size(); ++i) {
        same = i > 0 && groups[i] == groups[i - 1] ? same + 1 : 0;
        meeting += static_cast<double>(same);
      }
    }
  }
  const std::uint64_t groups = sampling.samples() / members;
  const double by_chance = pairs / static_cast<double>(groups);
  return (meeting - by_chance) / std::sqrt(by_chance);
}

TEST(Groups, OfWhichThereAreManyMeetThemselvesAsOftenAsByChance) {
  for (const std::uint64_t groups : {101U, 150U, 1'000U, 2'000U})
    for (const std::uint64_t members : {64U, 50U}) {
      const std::uint64_t length = groups * members * (groups > 1'000 ? 1 : 2);
      const double allowed = kChiSquareSigmas + 0.04 * std::sqrt(static_cast<double>(length) * 249 / 2 * 3 /
                                                                 static_cast<double>(groups));
      EXPECT_LT(std::abs(sigmas_of_meeting(*equal_groups(groups, members), members, length)), allowed)
          << groups << " groups of " << members;
      std::vector<Sampling::Part> parts(groups, {members, 1.0});
      parts.front().proportion = 1.01;  // the other arithmetic
      EXPECT_LT(std::abs(sigmas_of_meeting(*Sampling::mix(parts), members, length)), allowed)
          << groups << " groups of " << members << ", other shares";
    }
}

// Where an epoch has fewer positions than there are groups, its groups are others each time,
// not one of two halves.
TEST(Groups, OfShortEpochsAreDrawnAnew) {
  const auto sampling = equal_groups(2'000, 3);
  const auto groups_of = [&](std::uint64_t epoch) {
    std::set<std::uint64_t> groups;
    for (const std::uint64_t sample : drawn(*sampling, epoch, 1'000)) groups.insert(sample / 3);
    return groups;
  };
  const std::set<std::uint64_t> first = groups_of(0);
  EXPECT_EQ(first.size(), 1'000U) << "each group at most once";
  for (std::uint64_t epoch = 2; epoch < 20; ++epoch) {
    const std::set<std::uint64_t> other = groups_of(epoch);
    Indices both;
    std::set_intersection(first.begin(), first.end(), other.begin(), other.end(), std::back_inserter(both));
    EXPECT_NEAR(static_cast<double>(both.size()), 500, 6 * 11.2) << epoch;  // hypergeometric
  }
}

TEST(Groups, OfEqualSharesAreDrawnEquallyOftenInEveryEpoch) {
  std::mt19937_64 random(4);
  for (std::uint64_t round = 0; round < rounds(40, 6); ++round) {
    const std::uint64_t divisors[] = {2, 4, 5, 8, 10, 20, 25, 40, 50, 100};
    const std::uint64_t groups = round % 2 == 0 ? divisors[random() % 10] : 101 + random() % 3'000;
    const auto sampling = equal_groups(groups, 1 + random() % 9);
    const std::uint64_t members = sampling->samples() / groups;
    const std::uint64_t length = 1 + random() % 9'000;
    std::vector<std::uint64_t> times(groups);
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
      std::vector<std::uint64_t> counts(groups);
      for (const std::uint64_t sample : drawn(*sampling, epoch, length)) ++counts[sample / members];
      const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
      ASSERT_GE(*least, length / groups);
      ASSERT_LE(*most, length / groups + 2);
      for (std::size_t g = 0; g < groups; ++g) times[g] += counts[g];
      const auto [fewest, highest] = std::minmax_element(times.begin(), times.end());
      ASSERT_LE(*highest, *fewest + 1) << "over all epochs";
    }
  }
}

// In the order of time: the draws of a group are passes, and no sample comes twice in one.
TEST(Groups, ArePassedThroughWithoutASampleTwice) {
  std::mt19937_64 random(8);
  for (std::uint64_t round = 0; round < rounds(80, 10); ++round) {
    std::vector<Sampling::Part> parts(1 + random() % (round % 4 == 0 ? 150 : 5));
    const bool equal = random() % 2 == 0;
    for (auto& part : parts)
      part = {1 + random() % 300, equal ? 1.0 : 1.0 + static_cast<double>(random() % 20)};
    const auto sampling = Sampling::mix(parts);
    std::vector<std::size_t> group_of;
    for (std::size_t g = 0; g < parts.size(); ++g) group_of.resize(group_of.size() + parts[g].samples, g);
    const std::uint64_t length = 1 + random() % 2'500;
    std::vector<std::set<std::uint64_t>> pass(parts.size());
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch)
      for (const std::uint64_t sample : drawn(*sampling, epoch, length)) {
        std::set<std::uint64_t>& seen = pass[group_of[sample]];
        ASSERT_TRUE(seen.insert(sample).second) << "sample " << sample << " twice in a pass; round " << round
                                                << ", epoch " << epoch << ", " << parts.size() << " groups";
        if (seen.size() == parts[group_of[sample]].samples) seen.clear();
      }
  }
}

// What a batch draws does not depend on what was drawn with it.
TEST(Groups, AreDrawnAtAnyPositionAlone) {
  for (const bool equal : {false, true}) {
    for (const std::uint64_t groups : {1U, 3U, 150U, 1'200U}) {
      std::vector<Sampling::Part> parts;
      for (std::uint64_t g = 0; g < groups; ++g)
        parts.push_back({1 + g % 7, equal ? 1.0 : 1.0 + static_cast<double>(g % 5)});
      const auto sampling = Sampling::mix(parts);
      for (const std::uint64_t epoch : {0U, 1U, 5U}) {
        const Indices all = drawn(*sampling, epoch, 2'657);
        for (std::uint64_t at = all.size() - 1; at >= 7; at -= 7) {
          Indices one{at};
          sampling->draw({3, epoch, 2'657}, one);
          ASSERT_EQ(one[0], all[at]) << at;
        }
      }
    }
  }
}

TEST(Groups, AreNotDrawnWithoutAProportion) {
  std::vector<Sampling::Part> parts(500, {3, 1.0});
  for (std::size_t g = 0; g < parts.size(); g += 2) parts[g].proportion = 0;
  parts[4].samples = 0;
  std::vector<std::size_t> group_of;
  for (std::size_t g = 0; g < parts.size(); ++g) group_of.resize(group_of.size() + parts[g].samples, g);
  for (const double other : {1.0, 2.0}) {
    parts[1].proportion = other;
    const auto sampling = Sampling::mix(parts);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
      for (const std::uint64_t sample : drawn(*sampling, epoch, 2'100))
        ASSERT_EQ(group_of[sample] % 2, 1U) << sample;
  }
}

// Two groups of large data sets: blocks in which no pass ends are what they were in every version.
TEST(Groups, OfManySamplesAreDrawnAsInEveryVersion) {
  const auto sampling = Sampling::mix(std::vector<Sampling::Part>{{700'000, 0.7}, {300'000, 0.3}});
  Indices positions{0, 1, 2, 3, 4, 999'999};
  sampling->draw({3, 1, 1'000'000}, positions);
  EXPECT_EQ(positions, (Indices{828'840, 990'402, 814'614, 549'027, 361'569, 330'449}));
}

// States of earlier versions are told apart where the sequence is another one since then, and only there.
TEST(OrderDigest, IsAnotherOneWhereTheSequenceHasChanged) {
  const auto order = [](const Indices& shards, const std::function<void(OrderOptions&)>& change) {
    OrderOptions options;
    options.batch_size = 8;
    change(options);
    return Order(shards, options);
  };
  const auto expect_same = [](const Order& all, std::uint64_t digest) {
    EXPECT_EQ(all.digest(), digest);
    EXPECT_EQ(all.earlier_digest(), digest);
  };
  const auto expect_other = [](const Order& all, std::uint64_t digest) {
    EXPECT_NE(all.digest(), digest);
    EXPECT_EQ(all.earlier_digest(), digest);
  };
  const auto nothing = [](OrderOptions&) {};
  const auto windowed = [](OrderOptions& o) { o.order = OrderMode::windowed; };
  expect_same(order({300, 300}, nothing), 13034228913955699771U);
  expect_other(order({100, 60, 40}, nothing), 13034228913955699771U);
  expect_other(order({300, 300}, windowed), 2994365481979942042U);
  const Order many = order(Indices(257, 257), windowed);
  expect_same(many, many.digest());
  const Order sequential = order({5, 6}, [](OrderOptions& o) { o.order = OrderMode::sequential; });
  expect_same(sequential, sequential.digest());
  expect_other(order({300, 300}, [](OrderOptions& o) { o.samples_per_epoch = 100; }), 6934854084500126726U);
  expect_other(order({300, 300},
                     [](OrderOptions& o) {
                       o.sampling = Sampling::mix(std::vector<Sampling::Part>{{300, 1}, {300, 2}});
                     }),
               2797606793224578976U);
  std::vector<std::uint32_t> groups(600);
  for (std::uint32_t i = 0; i < 600; ++i) groups[i] = i % 3;
  expect_other(order({300, 300},
                     [&](OrderOptions& o) {
                       o.sampling = Sampling::grouped(groups, std::vector<double>{1, 1, 1});
                     }),
               4284937048735509782U);
  expect_same(order({300, 300}, [](OrderOptions& o) { o.sampling = Sampling::uniform(600, true); }),
              289646621692164183U);
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

TEST(Mix, RefusesWhatCannotBe) {
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
}

}  // namespace
}  // namespace shard
