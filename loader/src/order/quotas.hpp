// Quotas: how many of the positions of a block belong to each group, and how many did in all blocks before.
//
// A block has `size` positions. C(g) = size x (p(0) + ... + p(g - 1)) is where group g would begin if
// positions could be divided. In block j it begins at floor(C(g) + r(j)), where r(j) in [0, 1) is the j-th
// number of van der Corput's sequence to base 2. C is kept in units of 2^-20.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace shard {

class Quotas {
 public:
  // No groups.
  Quotas() = default;
  // proportions: their sum is 1. size: at most 2^36; with 0 there are no positions.
  Quotas(std::span<const double> proportions, std::uint64_t size) {
    double before = 0;
    for (const double proportion : proportions) {
      begins_.push_back(static_cast<std::uint64_t>(before * static_cast<double>(size << kBits) + 0.5));
      before += proportion;
    }
    begins_.push_back(size << kBits);
    for (std::uint64_t& begin : begins_) begin = std::min(begin, begins_.back());
  }

  // Where group g begins in block j; g may be the number of groups.
  std::uint64_t begin(std::uint64_t block, std::size_t group) const noexcept {
    return (begins_[group] + offset(block)) >> kBits;
  }
  // The group of a position of block j.
  std::size_t group_at(std::uint64_t block, std::uint64_t position) const noexcept {
    // floor(C + r) <= position if and only if C < position + 1 - r.
    const std::uint64_t bound = ((position + 1) << kBits) - offset(block);
    return static_cast<std::size_t>(std::lower_bound(begins_.begin(), begins_.end(), bound) -
                                    begins_.begin()) -
           1;
  }
  // Positions of group g in the blocks 0 to `blocks` - 1.
  std::uint64_t before(std::uint64_t blocks, std::size_t group) const noexcept {
    return sum_of_begins(blocks, group + 1) - sum_of_begins(blocks, group);
  }

 private:
  static constexpr std::uint64_t kBits = 20;
  static constexpr std::uint64_t kOne = std::uint64_t{1} << kBits;

  // The lowest kBits bits in reverse order.
  static std::uint64_t offset(std::uint64_t block) noexcept {
    auto bits = static_cast<std::uint32_t>(block);
    bits = (bits >> 1U & 0x55555555U) | (bits & 0x55555555U) << 1U;
    bits = (bits >> 2U & 0x33333333U) | (bits & 0x33333333U) << 2U;
    bits = (bits >> 4U & 0x0F0F0F0FU) | (bits & 0x0F0F0F0FU) << 4U;
    return __builtin_bswap32(bits) >> (32 - kBits);
  }

  // How many of the first `blocks` < kOne offsets are less than `bound`. Those of 2^i blocks in a row, the
  // first of which is a multiple of 2^i, are one progression with steps of kOne / 2^i.
  static std::uint64_t offsets_below(std::uint64_t blocks, std::uint64_t bound) noexcept {
    std::uint64_t count = 0;
    std::uint64_t first = 0;  // the offset of the first block of the part
    for (std::uint64_t bit = kBits; bit-- > 0;) {
      if ((blocks >> bit & 1U) == 0) continue;
      const std::uint64_t shift = kBits - bit;  // steps of 2^shift
      if (bound > first) count += std::min(std::uint64_t{1} << bit, ((bound - first - 1) >> shift) + 1);
      first += kOne >> (bit + 1);
    }
    return count;
  }

  std::uint64_t sum_of_begins(std::uint64_t blocks, std::size_t group) const noexcept {
    const std::uint64_t whole = begins_[group] >> kBits;
    const std::uint64_t part = begins_[group] & (kOne - 1);
    if (part == 0) return blocks * whole;
    // One more where the offset is at least kOne - part: in `part` of each kOne blocks.
    const std::uint64_t rest = blocks & (kOne - 1);
    return blocks * whole + (blocks >> kBits) * part + rest - offsets_below(rest, kOne - part);
  }

  std::vector<std::uint64_t> begins_;  // in units of 1 / kOne; one more than groups
};

}  // namespace shard
