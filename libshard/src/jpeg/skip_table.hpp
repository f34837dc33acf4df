// A look-up for reading AC coefficients without their values: each entry stands for all the codes that its
// bits hold, with the bits of their values.
//
//   the next 12 bits of the data:   code | value | code | value | co..
//                                   two symbols: their bits, and how far they lead in the zigzag
//
// So index building takes about half of the look-ups of decoding, and no value is formed. Shared by host and
// device, which packs its entries and knows fewer bits, as tables of many files are in use at once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/host_device.hpp"

#include "jpeg/huffman.hpp"
#include "jpeg/layout.hpp"

namespace shard::jpeg {

inline constexpr std::uint32_t kSkipBits = 12;
inline constexpr std::uint32_t kPackedSkipBits = 11;
inline constexpr std::uint32_t kPackedSkips = 1U << kPackedSkipBits;  // of a table
inline constexpr std::uint32_t kPackedTables = 2;                     // of a file; further ones have none
inline constexpr std::uint16_t kNoSkip = 0xFFFF;

// What the codes of an entry are worth.
struct Skip {
  std::uint8_t bits = 0;     // of codes and values; at most 12 + 15
  std::uint8_t advance = 0;  // in the zigzag; 64 more if the last code ends the block
  // Coefficients that the block must still have, or the entry leads beyond its end: then, or if no code is
  // complete (255), the codes are read one by one.
  std::uint8_t needs = 255;
};

// `bits`: the next `known` of the data, which are the upper ones of 16.
SHARD_EXACT constexpr Skip skip_of(const std::uint16_t* look_ups, std::uint32_t bits,
                                   std::uint32_t known) noexcept {
  Skip skip;
  std::uint32_t used = 0;
  std::uint32_t advance = 0;
  while (used < known) {
    const std::uint32_t entry = look_up(look_ups, (bits << used) & 0xFFFFU);
    const std::uint32_t length = entry >> 8;
    // The code is in the known bits; its value need not be.
    if (length == 0 || used + length > known) break;
    const std::uint32_t run = (entry >> 4) & 15U;
    const std::uint32_t size = entry & 15U;
    const bool ends = size == 0 && run != 15;
    if (advance + run + 1 > kBlockValues) break;
    used += length + size;
    if (!ends) advance += run + 1;
    skip.bits = static_cast<std::uint8_t>(used);
    skip.advance = static_cast<std::uint8_t>(ends ? advance + kBlockValues : advance);
    skip.needs = static_cast<std::uint8_t>(ends ? advance + 1 : advance);
    if (ends) break;
  }
  return skip;
}

// Bits 0 to 4: `bits`. 8: whether the last code ends the block. 9 to 15: `needs`, at most 127.
using PackedSkip = std::uint16_t;

// Where those of a file's AC table begin, or kNoSkip.
SHARD_EXACT constexpr std::uint16_t packed_skips_of(std::uint32_t table) noexcept {
  return table < kPackedTables ? static_cast<std::uint16_t>(table * kPackedSkips) : kNoSkip;
}
// Entry `i` of a table.
SHARD_EXACT constexpr PackedSkip packed_skip(const std::uint16_t* look_ups, std::uint32_t i) noexcept {
  const Skip skip = skip_of(look_ups, i << (16 - kPackedSkipBits), kPackedSkipBits);
  const std::uint32_t needs = skip.needs < 127 ? skip.needs : 127;
  const std::uint32_t ends = skip.advance > skip.needs ? 1 : 0;
  return static_cast<PackedSkip>(needs << 9 | ends << 8 | skip.bits);
}
SHARD_EXACT constexpr std::uint32_t needs_of(PackedSkip skip) noexcept { return skip >> 9U; }
// As Skip::advance, or more where the block ends.
SHARD_EXACT constexpr std::uint32_t advance_of(PackedSkip skip) noexcept {
  return (skip >> 9U) + (skip >> 2U & kBlockValues);
}

class SkipTable {
 public:
  // Keeps what it has if the codes are the same as in the last file.
  void assign(const HuffmanTable& table);
  const Skip* entries() const noexcept { return entries_.data(); }
  const std::uint16_t* look_up() const noexcept { return look_up_.entries; }

 private:
  HuffmanTable table_;
  LookUp look_up_;
  std::vector<Skip> entries_;
};

}  // namespace shard::jpeg
