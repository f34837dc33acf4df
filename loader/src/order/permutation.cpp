#include <algorithm>
#include <array>
#include <bit>

#include "base/digest/mix64.hpp"
#include "order/epoch_key.hpp"
#include "shard/loader/order.hpp"

namespace shard {

namespace {

constexpr std::uint64_t round_value(std::uint64_t half, std::uint64_t key) noexcept {
  return mix64(half ^ key) >> 32U;
}

constexpr std::size_t kLanes = 8;  // positions whose rounds overlap in apply()

// Rounds for few items. After 32, each order of 4, 5 or 6 items is as likely as any other to 6 parts in 10^7
// (computed from the chances of all orders, round by round).
constexpr std::uint64_t kFewRounds = 32;

// One round of swap-or-not: an item changes places with its partner, or not. It is its own inverse. Without
// branches, as half of them would be mispredicted.
std::uint64_t swap_or_not(std::uint64_t item, std::uint64_t n, std::uint64_t key,
                          std::uint64_t round) noexcept {
  const std::uint64_t round_key = mix64(key + round * 0xD1B54A32D192ED03U);
  const std::uint64_t sum = scaled(round_key, n);  // of an item and its partner, modulo n
  const std::uint64_t wraps = sum < item ? n : 0;
  const std::uint64_t partner = sum + wraps - item;
  const std::uint64_t coin = mix64(round_key ^ (std::max(item, partner) + 1)) >> 63U;
  return item ^ ((item ^ partner) & (std::uint64_t{0} - coin));
}

// Not inlined, so that the walks of many items stay as they are.
[[gnu::noinline]] std::uint64_t shuffled_few(std::uint64_t position, std::uint64_t n,
                                             std::uint64_t key) noexcept {
  for (std::uint64_t i = 0; i < kFewRounds; ++i) position = swap_or_not(position, n, key, i);
  return position;
}

}  // namespace

Permutation::Permutation(std::uint64_t n, std::uint64_t key) noexcept : n_(n) {
  if (n <= kFew) {
    round_keys_[0] = key;
    return;
  }
  const auto bits = static_cast<std::uint32_t>(std::bit_width(n > 1 ? n - 1 : 1));
  right_bits_ = (bits + 1) / 2;
  right_mask_ = (std::uint64_t{1} << right_bits_) - 1;
  left_mask_ = (std::uint64_t{1} << (bits - right_bits_)) - 1;
  for (std::uint64_t i = 0; i < kRounds; ++i) round_keys_[i] = mix64(key + i * 0xD1B54A32D192ED03U);
}

// The rounds change the left and the right half alternately. Each round can be undone, whatever the widths of
// the halves.
std::uint64_t Permutation::encrypt(std::uint64_t value) const noexcept {
  std::uint64_t left = value >> right_bits_;
  std::uint64_t right = value & right_mask_;
  for (std::size_t i = 0; i < kRounds; i += 2) {
    left ^= round_value(right, round_keys_[i]) & left_mask_;
    right ^= round_value(left, round_keys_[i + 1]) & right_mask_;
  }
  return left << right_bits_ | right;
}

std::uint64_t Permutation::operator()(std::uint64_t position) const noexcept {
  if (n_ <= kFew) return shuffled_few(position, n_, round_keys_[0]);
  return walk(position);
}

std::uint64_t Permutation::walk(std::uint64_t position) const noexcept {
  do position = encrypt(position);
  while (position >= n_);
  return position;
}

std::uint64_t Permutation::inverse(std::uint64_t value) const noexcept {
  if (n_ <= kFew) {
    for (std::uint64_t i = kFewRounds; i-- > 0;) value = swap_or_not(value, n_, round_keys_[0], i);
    return value;
  }
  do {
    std::uint64_t left = value >> right_bits_;
    std::uint64_t right = value & right_mask_;
    for (std::size_t i = kRounds; i > 0; i -= 2) {
      right ^= round_value(left, round_keys_[i - 1]) & right_mask_;
      left ^= round_value(right, round_keys_[i - 2]) & left_mask_;
    }
    value = left << right_bits_ | right;
  } while (value >= n_);
  return value;
}

void Permutation::apply(std::span<std::uint64_t> positions) const noexcept {
  // Independent walks in parallel lanes. A lane whose walk has ended takes the next position.
  std::array<std::uint64_t, kLanes> lane;
  std::array<std::size_t, kLanes> owner;
  std::size_t next = 0;
  for (; next < kLanes && next < positions.size(); ++next) {
    lane[next] = positions[next];
    owner[next] = next;
  }
  if (next < kLanes || n_ <= kFew) {
    for (std::uint64_t& position : positions) position = (*this)(position);
    return;
  }
  std::size_t running = kLanes;
  while (running == kLanes) {
    std::array<std::uint64_t, kLanes> left;
    std::array<std::uint64_t, kLanes> right;
    for (std::size_t i = 0; i < kLanes; ++i) {
      left[i] = lane[i] >> right_bits_;
      right[i] = lane[i] & right_mask_;
    }
    for (std::size_t round = 0; round < kRounds; round += 2) {
      for (std::size_t i = 0; i < kLanes; ++i)
        left[i] ^= round_value(right[i], round_keys_[round]) & left_mask_;
      for (std::size_t i = 0; i < kLanes; ++i)
        right[i] ^= round_value(left[i], round_keys_[round + 1]) & right_mask_;
    }
    for (std::size_t i = 0; i < kLanes; ++i) lane[i] = left[i] << right_bits_ | right[i];
    for (std::size_t i = 0; i < kLanes; ++i) {
      if (lane[i] >= n_) continue;
      positions[owner[i]] = lane[i];
      if (next < positions.size()) {
        lane[i] = positions[next];
        owner[i] = next++;
      } else {
        owner[i] = positions.size();
        --running;
      }
    }
  }
  for (std::size_t i = 0; i < kLanes; ++i)
    if (owner[i] < positions.size()) positions[owner[i]] = walk(lane[i]);
}

}  // namespace shard
