// Random: a counter-based generator. Value n of stream (seed, item, purpose) is a pure function of these four
// numbers, so what is made from it depends neither on threads nor on the order of work, nor on the standard
// library's distributions.
//
// The mixing function is that of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014). Not thread safe: each stream has its own, on one thread.
#pragma once

#include <cstdint>

namespace shard::bench {

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t item, std::uint64_t purpose) noexcept
      : key_(mix(mix(mix(seed) + item) + purpose)) {}

  std::uint64_t bits() noexcept { return mix(key_ + ++counter_ * kGamma); }
  // In [0, bound), bound > 0 and small: the bias of the multiplication is below bound / 2^32.
  std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>(((bits() >> 32) * bound) >> 32);
  }
  // In [0, 1), with 24 bits: exact in float32.
  float uniform() noexcept { return static_cast<float>(bits() >> 40) * (1.0F / 16777216.0F); }
  float uniform(float low, float high) noexcept { return low + (high - low) * uniform(); }
  bool chance(float probability) noexcept { return uniform() < probability; }
  // Mean 0, variance 1, bell-shaped, within +-3.47: the sum of four 16-bit uniforms.
  float bell() noexcept {
    const std::uint64_t b = bits();
    const auto sum =
        static_cast<std::int32_t>((b & 0xFFFF) + ((b >> 16) & 0xFFFF) + ((b >> 32) & 0xFFFF) + (b >> 48));
    return static_cast<float>(sum - 131070) * kBellScale;
  }

 private:
  static constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15U;
  static constexpr float kBellScale = 1.7320508F / 65536.0F;
  static constexpr std::uint64_t mix(std::uint64_t z) noexcept {
    z += kGamma;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }

  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace shard::bench
