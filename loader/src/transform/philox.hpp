// Philox4x32-10, a counter-based generator (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011): a pure function from (key, counter) to four 32-bit words.
#pragma once

#include <array>
#include <cstdint>

namespace shard {

constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

// The draws of one sample in one epoch, in sequence.
class SampleRandom {
 public:
  SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample) noexcept
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)},
        counter_{static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32U),
                 static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32U) << 16U} {}

  // Uniform in [0, 1), 32 bits.
  double uniform() noexcept { return word() * 0x1p-32; }
  // Uniform in [0, bound), bound >= 1 (by multiplication; the bias is below bound / 2^32).
  std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{word()} * bound >> 32U);
  }

 private:
  std::uint32_t word() noexcept {
    if (used_ == 4) {
      words_ = philox4x32(counter_, key_);
      ++counter_[3];  // epochs use 16 of its bits: 65,536 blocks a sample
      used_ = 0;
    }
    return words_[used_++];
  }

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> words_{};
  unsigned used_ = 4;
};

}  // namespace shard
