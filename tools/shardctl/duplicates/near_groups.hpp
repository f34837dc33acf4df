// Finds 64-bit hashes that differ in few bits, without comparing each with each.
#pragma once

#include <cstdint>
#include <vector>

#include "shardctl/duplicates/groups.hpp"

namespace shard::ctl {

struct HashedSample {
  std::uint64_t hash = 0;
  std::uint64_t sample = 0;
};

// The largest distance for which few candidates are looked at.
inline constexpr unsigned kMaxHashDistance = 12;

// Groups of samples: each is within `distance` bits of another one of its group. The list of members names
// the distance from the first of the group, which may be larger.
//
// Multi-index hashing (Norouzi, Punjani, Fleet: Fast search in Hamming space with multi-index hashing, 2012):
// if two hashes differ in at most `distance` bits, one of their four quarters differs in at most a quarter as
// many, so it is found in a table of the quarters. Takes up to 48 bytes a sample, `hashes` included. Errors:
// invalid_argument for a distance of more than kMaxHashDistance; resource for more than 2^32 - 1 hashes.
Members group_by_hash(std::vector<HashedSample> hashes, unsigned distance, unsigned threads);

}  // namespace shard::ctl
