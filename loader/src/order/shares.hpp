// Shares: which group each position of a sequence belongs to, and how often the group came before.
//
// A sequence is divided into blocks. A block has slots, as many as positions, in the order of the groups, and
// a permutation says which slot a position has:
//
//   positions of a block   0 1 2 3 4 5 6 7 8 9
//   slots                  6 0 9 2 5 7 1 3 8 4
//   groups of the slots    0 0 0 1 1 1 1 1 2 2     begin of group 1: 3, end: 8
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/digest/mix64.hpp"
#include "order/epoch_key.hpp"
#include "order/quotas.hpp"
#include "shard/loader/order.hpp"
#include "shard/loader/sampling.hpp"

namespace shard {

// A position's block, and where in it the position is.
struct BlockPlace {
  std::uint64_t key = 0;   // of its permutation: it tells the blocks of a data set apart
  std::uint64_t size = 0;  // positions
  std::uint64_t at = 0;
  std::uint64_t index = 0;  // among the blocks of its kind, over all epochs
};

// The group of a slot, its slots in the block, and its positions in all blocks before.
struct GroupSlots {
  std::size_t group = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t before = 0;
};

// The number of an epoch, reduced so that positions of all epochs can be counted.
// So far nobody trains for so long.
constexpr std::uint64_t countable(const Sampling::Epoch& epoch) noexcept {
  return epoch.number % ((std::uint64_t{1} << 62U) / (epoch.length + 1));
}

// Up to so many groups have exact shares in every 1,000 positions. Blocks of more groups have more positions
// of each, so that two of one group meet about as often as by chance: 0.97 as often within a block, where
// blocks with one position of each group would keep them apart.
inline constexpr std::size_t kFewGroups = 100;
inline constexpr std::uint64_t kEachOfMany = 32;

// Groups of equal shares. An epoch of n positions for m groups has
//
//   whole blocks | a short block | n mod m positions
//
// The whole blocks have 1,000 / m positions of each group, or kEachOfMany; the short block has fewer, but
// also as many of each. The positions that are left go around: those of all epochs together are rounds,
// each of which has every group once.
class EqualShares {
 public:
  // groups: those that are drawn, ascending.
  explicit EqualShares(std::vector<std::size_t> groups)
      : groups_(std::move(groups)),
        each_(groups_.size() > kFewGroups ? kEachOfMany : kBlock / groups_.size()) {}

  class InEpoch;

 private:
  static constexpr std::uint64_t kBlock = 1000;

  std::vector<std::size_t> groups_;
  std::uint64_t each_;  // positions of a group in a whole block
};

class EqualShares::InEpoch {
 public:
  InEpoch(const EqualShares& shares, const Sampling::Epoch& epoch)
      : shares_(shares),
        epoch_(epoch),
        groups_(shares.groups_.size()),
        block_(groups_ * shares.each_),
        blocks_(epoch.length / block_),
        each_(epoch.length / groups_),
        left_(epoch.length % groups_),
        number_(countable(epoch)),
        round_(round(number_ * left_ / groups_)) {}

  BlockPlace place(std::uint64_t position) const noexcept {
    if (position >= epoch_.length - left_) {
      const std::uint64_t of_all = number_ * left_ + position - (epoch_.length - left_);
      return {round_key(of_all / groups_), groups_, of_all % groups_, of_all / groups_};
    }
    const std::uint64_t k = position / block_;
    const std::uint64_t size = k < blocks_ ? block_ : epoch_.length - left_ - blocks_ * block_;
    return {mix64(epoch_key(epoch_.seed, epoch_.number, kBlocks) ^ k), size, position % block_, kNotARound};
  }

  GroupSlots slots(const BlockPlace& place, std::uint64_t position, std::uint64_t slot) const noexcept {
    if (place.index != kNotARound)
      return {shares_.groups_[slot], slot, slot + 1, (number_ + 1) * each_ + place.index};
    const std::uint64_t each = place.size / groups_;
    const std::uint64_t which = slot / each;
    // Rounds of earlier epochs that had the group.
    const std::uint64_t left_before = number_ * left_;
    const std::uint64_t in_begun_round =
        left_before % groups_ != 0 && round_.inverse(which) < left_before % groups_ ? 1 : 0;
    return {shares_.groups_[which], which * each, (which + 1) * each,
            number_ * each_ + position / block_ * shares_.each_ + left_before / groups_ + in_begun_round};
  }

 private:
  static constexpr std::uint64_t kNotARound = ~std::uint64_t{0};

  std::uint64_t round_key(std::uint64_t index) const noexcept {
    return mix64(epoch_key(epoch_.seed, 0, kRounds) ^ index);
  }
  Permutation round(std::uint64_t index) const noexcept { return {groups_, round_key(index)}; }

  const EqualShares& shares_;
  Sampling::Epoch epoch_;
  std::uint64_t groups_;
  std::uint64_t block_;   // positions of a whole block
  std::uint64_t blocks_;  // whole ones of the epoch
  std::uint64_t each_;    // positions of a group in the epoch, without those that are left
  std::uint64_t left_;
  std::uint64_t number_;
  Permutation round_;  // that has begun when the epoch begins
};

// Groups in any proportions, by quotas (quotas.hpp). Up to kFewGroups: an epoch has blocks of 1,000
// positions, and the last one may be shorter. With more groups there are blocks of kEachOfMany positions
// for each group, which do not end with the epoch. Quotas alone would give a regular choice of groups to
// each block; the groups are then in no order, too.
class UnequalShares {
 public:
  // proportions: their sum is 1.
  explicit UnequalShares(std::vector<double> proportions)
      : shares_(std::move(proportions)), many_(shares_.size() > kFewGroups) {
    if (many_) {
      block_ = kEachOfMany * shares_.size();
      const Permutation order(shares_.size(), kOrderKey);
      std::vector<double> in_order;
      for (std::uint64_t i = 0; i < shares_.size(); ++i) {
        groups_.push_back(order(i));
        in_order.push_back(shares_[order(i)]);
      }
      shares_ = std::move(in_order);
    }
    full_ = Quotas(shares_, block_);
  }

  class InEpoch;

 private:
  static constexpr std::uint64_t kOrderKey = 0x67726F757073;

  std::vector<double> shares_;
  bool many_;
  std::uint64_t block_ = 1000;
  std::vector<std::size_t> groups_;  // by place in the order; empty: in their own order
  Quotas full_;
};

class UnequalShares::InEpoch {
 public:
  InEpoch(const UnequalShares& shares, const Sampling::Epoch& epoch)
      : shares_(shares),
        epoch_(epoch),
        number_(countable(epoch)),
        blocks_(shares.many_ ? 0 : epoch.length / shares.block_),
        last_(shares.many_ ? Quotas() : Quotas(shares.shares_, epoch.length % shares.block_)) {}

  BlockPlace place(std::uint64_t position) const noexcept {
    if (shares_.many_) {
      const std::uint64_t of_all = number_ * epoch_.length + position;
      const std::uint64_t k = of_all / shares_.block_;
      return {mix64(epoch_key(epoch_.seed, 0, kRounds) ^ k), shares_.block_, of_all % shares_.block_, k};
    }
    const std::uint64_t k = position / shares_.block_;
    return {mix64(epoch_key(epoch_.seed, epoch_.number, kBlocks) ^ k),
            k < blocks_ ? shares_.block_ : epoch_.length % shares_.block_, position % shares_.block_,
            k < blocks_ ? number_ * blocks_ + k : number_};
  }

  GroupSlots slots(const BlockPlace& place, std::uint64_t position, std::uint64_t slot) const noexcept {
    const bool full = shares_.many_ || position / shares_.block_ < blocks_;
    const Quotas& quotas = full ? shares_.full_ : last_;
    const std::size_t at = quotas.group_at(place.index, slot);
    const std::uint64_t full_before = full ? place.index : (number_ + 1) * blocks_;
    return {shares_.groups_.empty() ? at : shares_.groups_[at], quotas.begin(place.index, at),
            quotas.begin(place.index, at + 1),
            shares_.full_.before(full_before, at) + (shares_.many_ ? 0 : last_.before(number_, at))};
  }

 private:
  const UnequalShares& shares_;
  Sampling::Epoch epoch_;
  std::uint64_t number_;
  std::uint64_t blocks_;  // full ones of an epoch
  Quotas last_;
};

}  // namespace shard
