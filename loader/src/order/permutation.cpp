#include <bit>

#include "order/mix.hpp"
#include "shard/loader/order.hpp"

namespace shard {

namespace {
constexpr std::uint64_t round_value(std::uint64_t half, std::uint64_t key) noexcept {
  return mix64(half ^ key) >> 32U;
}
}  // namespace

Permutation::Permutation(std::uint64_t n, std::uint64_t key) noexcept : n_(n) {
  const auto bits = static_cast<std::uint32_t>(std::bit_width(n > 1 ? n - 1 : 1));
  half_bits_ =
      (bits + 1) / 2;  // the domain 2^(2 half_bits) is below 4 n: fewer than 4 steps of the walk on average
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
  for (std::uint64_t i = 0; i < std::size(round_keys_); ++i)
    round_keys_[i] = mix64(key + i * 0xD1B54A32D192ED03U);
}

std::uint64_t Permutation::operator()(std::uint64_t position) const noexcept {
  std::uint64_t value = position;
  do {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & half_mask_;
    for (std::uint64_t key : round_keys_) {
      const std::uint64_t next = left ^ (round_value(right, key) & half_mask_);
      left = right;
      right = next;
    }
    value = left << half_bits_ | right;
  } while (value >= n_);
  return value;
}

std::uint64_t Permutation::inverse(std::uint64_t value) const noexcept {
  do {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & half_mask_;
    for (std::size_t i = std::size(round_keys_); i-- > 0;) {
      const std::uint64_t previous = right ^ (round_value(left, round_keys_[i]) & half_mask_);
      right = left;
      left = previous;
    }
    value = left << half_bits_ | right;
  } while (value >= n_);
  return value;
}

}  // namespace shard
