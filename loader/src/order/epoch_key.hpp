// Random numbers of an order: keys, and streams of numbers under a key.
#pragma once

#include <cstdint>

#include "base/digest/mix64.hpp"

namespace shard {

// What a key is for. The values enter the sequences: they never change.
enum Purpose : std::uint64_t {
  kShards = 1,
  kSamples = 2,
  kBlocks = 3,
  kVisits = 4,
  kColumns = 5,
  kThresholds = 6,
  kKeys = 7,
  kUniform = 8,
  kRounds = 9,
  kBucketSamples = 10,
  kBucketBatches = 11,
  kLengthWindows = 12,
  kBucketDraws = 13,
};

// A key for one purpose of one epoch.
constexpr std::uint64_t epoch_key(std::uint64_t seed, std::uint64_t epoch, std::uint64_t purpose) noexcept {
  return mix64(mix64(mix64(seed) ^ epoch) ^ purpose);
}

// Number `index` of the stream under a key: SplitMix64.
constexpr std::uint64_t random_at(std::uint64_t key, std::uint64_t index) noexcept {
  return mix64(key + index * 0x9E3779B97F4A7C15U);
}

// A random number scaled to [0, n).
constexpr std::uint64_t scaled(std::uint64_t random, std::uint64_t n) noexcept {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(random) * n) >> 64U);
}

}  // namespace shard
