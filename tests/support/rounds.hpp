// How much a randomised test does: fewer rounds where a sanitizer makes each one dear, others by request.
//
//   SHARD_TEST_STRIDE=N   every N-th round or byte of slow tests (7); 1: all, as in .ci/run
//   SHARD_TEST_ROUNDS=N   rounds of each randomised test
//   SHARD_TEST_SEED=N     the seed of its first round (round i has seed N + i)
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARD_SANITIZED true
#elif defined(__has_feature)
#define SHARD_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SHARD_SANITIZED false
#endif

namespace shard::testing {

inline constexpr bool kSanitized = SHARD_SANITIZED;

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Slow tests that would try every byte try every stride()-th one.
inline std::uint64_t stride() { return std::max<std::uint64_t>(number_from("SHARD_TEST_STRIDE", 7), 1); }

// By default a part of the plain number, but not less than where a sanitizer makes each round slow.
inline std::uint64_t rounds(std::uint64_t plain, std::uint64_t sanitized) {
  const std::uint64_t some = std::max(plain / stride(), std::min(plain, sanitized));
  return number_from("SHARD_TEST_ROUNDS", kSanitized ? sanitized : some);
}
inline std::uint64_t first_seed() { return number_from("SHARD_TEST_SEED", 1); }

}  // namespace shard::testing
