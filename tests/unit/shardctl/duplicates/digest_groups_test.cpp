// Samples with equal digests are grouped as a map would group them.
#include "shardctl/duplicates/digest_groups.hpp"

#include <atomic>
#include <map>
#include <random>

#include "support/expect_error.hpp"

namespace shard::ctl {
namespace {

// The same by other means.
Members expected_groups(const std::vector<std::uint64_t>& digests) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> samples;
  for (std::uint64_t i = 0; i < digests.size(); ++i) samples[digests[i]].push_back(i);
  std::map<std::uint64_t, std::vector<std::uint64_t>> by_first;
  for (auto& [digest, list] : samples)
    if (list.size() > 1) by_first[list[0]] = list;
  Members members;
  std::uint32_t group = 0;
  for (const auto& [first, list] : by_first) {
    for (const std::uint64_t sample : list) members.push_back({sample, group, 0});
    ++group;
  }
  return members;
}

void expect_grouped(const std::vector<std::uint64_t>& digests, unsigned threads) {
  const Members members =
      group_by_digest(digests.size(), threads, [&](std::uint64_t sample) { return digests[sample]; });
  EXPECT_TRUE(members == expected_groups(digests)) << digests.size() << " digests";
}

TEST(DigestGroups, FewSamplesAreGroupedInTheOrderOfTheirFirst) {
  expect_grouped({}, 1);
  expect_grouped({7}, 1);
  expect_grouped({7, 7}, 2);
  expect_grouped({9, 7, 7, 9, 9, 3}, 2);
  expect_grouped({~0ULL, 0, ~0ULL, 0}, 2);
}

TEST(DigestGroups, RandomDigestsAreGroupedAsByAMap) {
  std::mt19937_64 random(1);
  for (const std::uint64_t distinct : {1U, 5U, 1000U, 300'000U}) {
    std::vector<std::uint64_t> digests(200'000);
    for (std::uint64_t& digest : digests) digest = (random() % distinct) * 0x9E3779B97F4A7C15U;
    expect_grouped(digests, 3);
  }
}

TEST(DigestGroups, DigestsOfOnePartAreGroupedToo) {
  std::mt19937_64 random(2);
  std::vector<std::uint64_t> digests(100'000);
  for (std::uint64_t& digest : digests) digest = 0xAB00'0000'0000'0000U | random() % 70'000;
  expect_grouped(digests, 2);
}

TEST(DigestGroups, DigestsThatChangeMeanwhileAreAnError) {
  std::atomic<int> calls{0};
  const auto changing = [&](std::uint64_t sample) -> std::uint64_t {
    return calls++ < 4 ? sample / 2 : 0;  // 0 0 1 1, and then 0 0 0 0
  };
  EXPECT_SHARD_ERROR(group_by_digest(4, 1, changing), ErrorCode::corrupt, "a program writes to the data set");
  calls = 0;
  const auto vanishing = [&](std::uint64_t sample) -> std::uint64_t { return calls++ < 4 ? 5 : sample; };
  EXPECT_SHARD_ERROR(group_by_digest(4, 1, vanishing), ErrorCode::corrupt,
                     "a program writes to the data set");
}

}  // namespace
}  // namespace shard::ctl
