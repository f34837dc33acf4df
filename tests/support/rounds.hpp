// How much a randomised test does: fewer rounds where a sanitizer makes each one dear, others by request.
//
//   SHARD_TEST_ROUNDS=N   rounds of each randomised test
//   SHARD_TEST_SEED=N     the seed of its first round (round i has seed N + i)
#pragma once

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

inline std::uint64_t rounds(std::uint64_t plain, std::uint64_t sanitized) {
  return number_from("SHARD_TEST_ROUNDS", kSanitized ? sanitized : plain);
}
inline std::uint64_t first_seed() { return number_from("SHARD_TEST_SEED", 1); }

}  // namespace shard::testing
