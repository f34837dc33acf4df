// The table of quarters finds the pairs that comparing each with each finds.
#include "shardctl/duplicates/near_groups.hpp"

#include <bit>
#include <random>

#include "support/expect_error.hpp"

namespace shard::ctl {
namespace {

// Groups by comparing each with each, until nothing changes.
Members expected_near(const std::vector<HashedSample>& hashes, unsigned distance) {
  std::vector<std::uint32_t> group(hashes.size());
  for (std::uint32_t i = 0; i < group.size(); ++i) group[i] = i;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (static_cast<unsigned>(std::popcount(hashes[i].hash ^ hashes[j].hash)) > distance) continue;
        if (group[i] == group[j]) continue;
        changed = true;
        group[i] = group[j] = std::min(group[i], group[j]);
      }
    }
  }
  Members members;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const auto size = std::count(group.begin(), group.end(), group[i]);
    const int bits = std::popcount(hashes[i].hash ^ hashes[group[i]].hash);
    if (size > 1) members.push_back({hashes[i].sample, group[i], static_cast<std::uint32_t>(bits)});
  }
  number_groups(members);
  return members;
}

// Some random hashes, and others that differ from earlier ones in a few bits.
std::vector<HashedSample> clustered_hashes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<HashedSample> hashes;
  for (std::uint64_t sample = 0; sample < count; ++sample) {
    std::uint64_t hash = random();
    if (sample > 10 && random() % 2 == 0) {
      hash = hashes[random() % sample].hash;
      for (std::uint64_t bits = random() % 16; bits > 0; --bits) hash ^= std::uint64_t{1} << (random() % 64);
    }
    hashes.push_back({hash, sample * 3});
  }
  return hashes;
}

TEST(NearGroups, EveryDistanceFindsWhatComparingEachWithEachFinds) {
  for (unsigned distance = 0; distance <= kMaxHashDistance; ++distance) {
    const std::vector<HashedSample> hashes = clustered_hashes(300, distance + 1);
    const Members members = group_by_hash(hashes, distance, 3);
    EXPECT_FALSE(members.empty());
    EXPECT_TRUE(members == expected_near(hashes, distance)) << distance;
  }
}

TEST(NearGroups, EachIsNearAnotherOfItsGroupAndTheDistanceIsFromTheFirst) {
  const Members members =
      group_by_hash({{0b0111, 8}, {0b0001, 2}, {0b0000, 5}, {0b0011, 9}, {1ULL << 63U, 1}}, 1, 1);
  EXPECT_TRUE(members == (Members{{1, 0, 0}, {2, 0, 2}, {5, 0, 1}, {8, 0, 4}, {9, 0, 3}}));
}

TEST(NearGroups, NoHashesHaveNoGroupsAndALargeDistanceIsRefused) {
  EXPECT_TRUE(group_by_hash({}, 12, 2).empty());
  EXPECT_SHARD_ERROR(group_by_hash({}, 13, 1), ErrorCode::invalid_argument, "at most 12 of the 64");
}

}  // namespace
}  // namespace shard::ctl
