#include "jpeg/skip_table.hpp"

#include <cstring>

#include "jpeg/layout.hpp"

namespace shard::jpeg {
namespace {

// `bits`: the entry's, in the upper 12 of 16.
Skip skip_of(const std::uint16_t* table, std::uint32_t bits) {
  Skip skip;
  std::uint32_t used = 0;
  std::uint32_t advance = 0;
  while (used < kSkipBits) {
    const std::uint32_t entry = look_up(table, (bits << used) & 0xFFFFU);
    const std::uint32_t length = entry >> 8;
    // The code is in the known bits; its value need not be.
    if (length == 0 || used + length > kSkipBits) break;
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

}  // namespace

void SkipTable::assign(const HuffmanTable& table) {
  if (!entries_.empty() && std::memcmp(&table, &table_, sizeof table) == 0) return;
  table_ = table;
  make_look_up(table, look_up_.entries);
  entries_.resize(std::size_t{1} << kSkipBits);
  for (std::uint32_t i = 0; i < entries_.size(); ++i)
    entries_[i] = skip_of(look_up_.entries, i << (16 - kSkipBits));
}

}  // namespace shard::jpeg
