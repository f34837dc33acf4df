// How much a randomised test does: fewer rounds where a sanitizer makes each one dear, others by request.
//
//   SHARD_TEST_ROUNDS=N   rounds of each randomised test
//   SHARD_TEST_SEED=N     the seed of its first round (round i has seed N + i)
#pragma once

#include <cstdint>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHARD_ADDRESS_SANITIZED 1
#endif
#if __has_feature(thread_sanitizer)
#define SHARD_THREAD_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SHARD_ADDRESS_SANITIZED 1
#endif
#if defined(__SANITIZE_THREAD__)
#define SHARD_THREAD_SANITIZED 1
#endif

namespace shard::testing {

#if defined(SHARD_ADDRESS_SANITIZED)
inline constexpr bool kAddressSanitized = true;
#else
inline constexpr bool kAddressSanitized = false;
#endif
#if defined(SHARD_ADDRESS_SANITIZED) || defined(SHARD_THREAD_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

inline std::uint64_t rounds(std::uint64_t plain, std::uint64_t sanitized) {
  return number_from("SHARD_TEST_ROUNDS", kSanitized ? sanitized : plain);
}
inline std::uint64_t first_seed() { return number_from("SHARD_TEST_SEED", 1); }

}  // namespace shard::testing
