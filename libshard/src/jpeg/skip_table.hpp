// A look-up for reading AC coefficients without their values: each entry stands for all the codes that its
// bits hold, with the bits of their values.
//
//   the next 12 bits of the data:   code | value | code | value | co..
//                                   two symbols: their bits, and how far they lead in the zigzag
//
// So index building takes about half of the look-ups of decoding, and no value is formed.
#pragma once

#include <cstdint>
#include <vector>

#include "jpeg/huffman.hpp"

namespace shard::jpeg {

inline constexpr std::uint32_t kSkipBits = 12;

// What the codes of an entry are worth.
struct Skip {
  std::uint8_t bits = 0;     // of codes and values; at most 12 + 15
  std::uint8_t advance = 0;  // in the zigzag; 64 more if the last code ends the block
  // Coefficients that the block must still have, or the entry leads beyond its end: then, or if no code is
  // complete (255), the codes are read one by one.
  std::uint8_t needs = 255;
};

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
