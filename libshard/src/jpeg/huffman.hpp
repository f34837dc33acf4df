// Huffman tables of a JPEG, and the look-up that decoders use: two levels and no other path.
//
//   16 bits of the data:  b15 ........ b7 | b6 ..... b0
//                         first level     | second level, of 1 to 7 of these bits
//
//   entry        0 length(5)  symbol(8)   a code of `length` bits; 0: no code begins with these bits
//   link         1 width(3)  offset(11)   the second level: entries[offset + its `width` bits]
//
// ITU-T T.81: annex C (codes from counts), F.2.2.3 (decoding).
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/bits.hpp"

namespace shard::jpeg {

inline constexpr std::uint32_t kLongestCode = 16;
inline constexpr std::uint32_t kMostDcBits = 15;  // of a DC difference
inline constexpr std::uint32_t kFirstLevelBits = 9;
// Codes stand in order of their length, so all but 7 second levels have codes of one length and as many
// entries as codes: 512 + 256 + 7 * 128.
inline constexpr std::uint32_t kLookUpEntries = 1664;

// As in a DHT segment.
struct HuffmanTable {
  std::uint8_t counts[kLongestCode + 1] = {};  // of codes of 1 to 16 bits; [0] is unused
  std::uint8_t symbols[256] = {};
};

struct LookUp {
  std::uint16_t entries[kLookUpEntries] = {};
};

// Whether the counts make a prefix code whose codes are not all 1s (as libjpeg demands), of at most 256.
SHARD_EXACT constexpr bool is_prefix_code(const HuffmanTable& table) noexcept {
  std::uint32_t code = 0;
  std::uint32_t total = 0;
  for (std::uint32_t length = 1; length <= kLongestCode; ++length, code <<= 1) {
    code += table.counts[length];
    total += table.counts[length];
    if (table.counts[length] != 0 && code >= (1U << length)) return false;
  }
  return total <= 256;
}

// The bits of the second level that begins with a code of `length`: as many as it takes until the codes that
// are left fill it, or those of the longest.
SHARD_EXACT constexpr std::uint32_t second_level_bits(const std::uint16_t* left, std::uint32_t length,
                                                      std::uint32_t longest) noexcept {
  std::uint32_t bits = length - kFirstLevelBits;
  std::int32_t room = 1 << bits;
  for (; bits + kFirstLevelBits < longest; ++bits, room <<= 1) {
    room -= left[bits + kFirstLevelBits];
    if (room <= 0) break;
  }
  return bits;
}

// Whether the table may be one of DC differences.
SHARD_EXACT constexpr bool is_dc_table(const HuffmanTable& table) noexcept {
  for (const std::uint8_t symbol : table.symbols)
    if (symbol > kMostDcBits) return false;
  return true;
}

// Fills entries that are all 0, of which kLookUpEntries are there; returns how many are used. `table` is a
// prefix code.
SHARD_EXACT constexpr std::uint32_t fill_look_up(const HuffmanTable& table, std::uint16_t* entries) noexcept {
  std::uint16_t left[kLongestCode + 1] = {};
  std::uint32_t longest = 0;
  for (std::uint32_t length = 1; length <= kLongestCode; ++length) {
    left[length] = table.counts[length];
    if (left[length] != 0) longest = length;
  }
  std::uint32_t code = 0;
  std::uint32_t index = 0;
  std::uint32_t unused = 1U << kFirstLevelBits;
  for (std::uint32_t length = 1; length <= longest; ++length, code <<= 1)
    for (std::uint32_t i = 0; i < table.counts[length]; ++i, ++code, ++index) {
      const auto entry = static_cast<std::uint16_t>(length << 8 | table.symbols[index]);
      std::uint32_t level_bits = kFirstLevelBits;
      std::uint32_t offset = 0;
      std::uint32_t code_bits = length;
      if (length > kFirstLevelBits) {
        code_bits = length - kFirstLevelBits;
        std::uint16_t& link = entries[code >> code_bits];
        if (link == 0) {
          const std::uint32_t bits = second_level_bits(left, length, longest);
          link = static_cast<std::uint16_t>(1U << 15 | bits << 11 | unused);
          unused += 1U << bits;
        }
        level_bits = (link >> 11) & 7U;
        offset = link & 0x7FFU;
      }
      const std::uint32_t shift = level_bits - code_bits;
      const std::uint32_t first = offset + ((code << shift) & ((1U << level_bits) - 1U));
      for (std::uint32_t k = 0; k < (1U << shift); ++k) entries[first + k] = entry;
      --left[length];
    }
  return unused;
}

SHARD_EXACT constexpr void make_look_up(const HuffmanTable& table, std::uint16_t* entries) noexcept {
  for (std::uint32_t i = 0; i < kLookUpEntries; ++i) entries[i] = 0;
  fill_look_up(table, entries);
}

// `bits`: the next 16 of the data. The symbol, and the length of its code << 8; 0: there is no such code.
SHARD_EXACT constexpr std::uint32_t look_up(const std::uint16_t* entries, std::uint32_t bits) noexcept {
  std::uint32_t entry = entries[bits >> (16 - kFirstLevelBits)];
  if ((entry & 0x8000U) != 0) {
    const std::uint32_t width = (entry >> 11) & 7U;
    entry = entries[(entry & 0x7FFU) + ((bits & 0x7FU) >> (7U - width))];
  }
  return entry;
}

// The same for decoders that form values: everything that a code says, ready to use.
//
//   byte 0   length of the code
//   byte 1   length of the code and its value
//   byte 2   length of the value
//   byte 3   how far an AC code leads in the zigzag: its run + 1; 64 at the end of a block; kNoCode: no code
//            begins with these bits; 0: a link, whose byte 0 is its width, and bytes 1 and 2 the offset
using CodeEntry = std::uint32_t;
inline constexpr std::uint32_t kNoCode = 192;

struct CodeTable {
  CodeEntry entries[kLookUpEntries] = {};
};

SHARD_EXACT constexpr CodeEntry code_entry(std::uint32_t entry) noexcept {
  if (entry == 0) return kNoCode << 24;
  if ((entry & 0x8000U) != 0) return (entry & 0x7FFU) << 8 | (entry >> 11 & 7U);
  const std::uint32_t length = entry >> 8;
  const std::uint32_t size = entry & 15U;
  const std::uint32_t run = (entry >> 4) & 15U;
  const std::uint32_t advance = size == 0 && run != 15 ? 64 : run + 1;
  return advance << 24 | size << 16 | (length + size) << 8 | length;
}

// `table` is a prefix code.
inline void make_codes(const HuffmanTable& table, CodeTable& codes) noexcept {
  LookUp look_up;
  make_look_up(table, look_up.entries);
  for (std::uint32_t i = 0; i < kLookUpEntries; ++i) codes.entries[i] = code_entry(look_up.entries[i]);
}

// `window`: the next 32 bits of the data.
SHARD_EXACT inline CodeEntry code_at(const CodeEntry* entries, std::uint32_t window) noexcept {
  CodeEntry entry = entries[window >> (32 - kFirstLevelBits)];
  if (entry >> 24 == 0) entry = entries[(entry >> 8) + funnel(0, window << kFirstLevelBits, entry)];
  return entry;
}

// The value behind the code at the start of `window` (T.81, F.12); 0 if it has none.
SHARD_EXACT inline std::int32_t value_of(std::uint32_t window, CodeEntry entry) noexcept {
  const std::uint32_t bits = funnel(window, 0, entry);
  // Values below 0 are stored as the complement of their amount.
  const auto flip = static_cast<std::uint32_t>(~static_cast<std::int32_t>(bits) >> 31);
  const std::uint32_t amount = funnel(0, bits ^ flip, entry >> 16);
  return static_cast<std::int32_t>((amount ^ flip) - flip);
}

}  // namespace shard::jpeg
