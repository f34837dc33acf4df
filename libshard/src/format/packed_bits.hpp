// 8 values of a group in 64 bits: from the `width` bytes of a frame to 8 bytes and back. For the vector code.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/packed_frame.hpp"

namespace shard::packed {

inline constexpr std::uint64_t kLowBits = 0x0101010101010101U;
inline constexpr std::uint64_t kHighBits = 0x8080808080808080U;

struct BytesOfCode {
  std::uint64_t values = 0;  // the low `width` bits of each byte
  // 128 - bias in each byte: (values + raise) ^ 128 = values - bias, without a carry between bytes
  std::uint64_t raise = 0;
  std::uint64_t width = 0;
};

constexpr std::array<BytesOfCode, kCodes> make_bytes_of_codes() noexcept {
  std::array<BytesOfCode, kCodes> all;
  for (unsigned code = 0; code < kCodes; ++code)
    all[code] = {kLowBits * ((1U << code_width(code)) - 1), kLowBits * (128 - code_bias(code)),
                 code_width(code)};
  return all;
}
inline constexpr std::array<BytesOfCode, kCodes> kBytesOfCode = make_bytes_of_codes();

// Steps of spreading 8 fields to bytes: the upper half of the fields of each word of 64, 32, 16 bits moves
// up.
struct SpreadSteps {
  std::uint64_t stay[3] = {};
  std::uint64_t move[3] = {};  // where the moved fields are afterwards
  unsigned shift[3] = {};
};

constexpr std::array<SpreadSteps, 9> make_spread_steps() noexcept {
  std::array<SpreadSteps, 9> all;
  for (unsigned width = 0; width <= 8; ++width) {
    for (unsigned step = 0; step < 3; ++step) {
      const unsigned word = 32U >> step;         // bits of a half
      const unsigned used = width * (word / 8);  // of it
      const std::uint64_t field = (std::uint64_t{1} << used) - 1;
      for (unsigned at = 0; at < 64; at += 2 * word) {
        all[width].stay[step] |= field << at;
        all[width].move[step] |= field << (at + word);
      }
      all[width].shift[step] = word - used;
    }
  }
  return all;
}
inline constexpr std::array<SpreadSteps, 9> kSpreadSteps = make_spread_steps();

// What pdep and pext do with kBytesOfCode[code].values, for machines where they are slow or not there.
inline std::uint64_t spread_bits(std::uint64_t bits, unsigned code) noexcept {
  const SpreadSteps& steps = kSpreadSteps[code_width(code)];
  for (unsigned step = 0; step < 3; ++step)
    bits = (bits & steps.stay[step]) | ((bits << steps.shift[step]) & steps.move[step]);
  return bits;
}
inline std::uint64_t gather_bits(std::uint64_t values, unsigned code) noexcept {
  const SpreadSteps& steps = kSpreadSteps[code_width(code)];
  for (unsigned step = 3; step-- > 0;)
    values = (values & steps.stay[step]) | ((values & steps.move[step]) >> steps.shift[step]);
  return values;
}

// The code of a group, from the union of its folded residuals (0 -1 1 -2 2 -> 0 1 2 3 4) and of the folded
// negatives.
inline unsigned choose_code(std::uint8_t plain, std::uint8_t shifted) noexcept {
  const auto width = static_cast<unsigned>(std::bit_width(plain));
  const auto other = static_cast<unsigned>(std::bit_width(shifted));
  return other < width ? other + 8 : width;
}

// Memory for the rows of a strip, kept by the thread unless it is large. Not initialised.
class StripMemory {
 public:
  explicit StripMemory(std::size_t size) {
    std::vector<std::uint8_t>& memory = size > kKeptBytes ? own_ : kept();
    if (memory.size() < size) memory.resize(size);
    data_ = memory.data();
  }
  std::uint8_t* data() noexcept { return data_; }

 private:
  static constexpr std::size_t kKeptBytes = std::size_t{1} << 20;
  static std::vector<std::uint8_t>& kept() {
    thread_local std::vector<std::uint8_t> memory;
    return memory;
  }
  std::vector<std::uint8_t> own_;
  std::uint8_t* data_ = nullptr;
};

}  // namespace shard::packed
