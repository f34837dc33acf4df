// 8 values of a group in 64 bits, from the `width` bytes of a frame to 8 bytes and back, and 16 in a vector.
// For the vector code.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/codec/packed_frame.hpp"

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

// The same for a group in a vector of 16 bytes: which bytes hold a value, as pairs, and what moves its lowest
// bit to bit 8.
struct LanesOfCode {
  alignas(16) std::uint8_t upper[16] = {};  // of the upper row
  alignas(16) std::uint8_t lower[16] = {};
  alignas(16) std::uint16_t moves[8] = {};
  alignas(16) std::uint8_t values[16] = {};
  alignas(16) std::uint8_t bias[16] = {};
};

constexpr std::array<LanesOfCode, kCodes> make_lanes_of_codes() noexcept {
  std::array<LanesOfCode, kCodes> all;
  for (unsigned code = 0; code < kCodes; ++code) {
    const unsigned width = code_width(code);
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned byte = i * width / 8;
      for (unsigned next = 0; next < 2; ++next) {
        all[code].upper[2 * i + next] = static_cast<std::uint8_t>(byte + next);
        all[code].lower[2 * i + next] = static_cast<std::uint8_t>(std::min(width + byte + next, 15U));
      }
      all[code].moves[i] = static_cast<std::uint16_t>(256U >> (i * width % 8));
    }
    for (unsigned i = 0; i < 16; ++i) {
      all[code].values[i] = static_cast<std::uint8_t>((1U << width) - 1);
      all[code].bias[i] = static_cast<std::uint8_t>(code_bias(code));
    }
  }
  return all;
}
inline constexpr std::array<LanesOfCode, kCodes> kLanesOfCode = make_lanes_of_codes();

// Steps of gathering 8 fields from bytes: the upper half of the fields of each word of 16, 32, 64 bits moves
// down.
struct GatherSteps {
  std::uint64_t stay[3] = {};
  std::uint64_t move[3] = {};  // where the moved fields are before
  unsigned shift[3] = {};
};

constexpr std::array<GatherSteps, 9> make_gather_steps() noexcept {
  std::array<GatherSteps, 9> all;
  for (unsigned width = 0; width <= 8; ++width) {
    for (unsigned step = 0; step < 3; ++step) {
      const unsigned half = 8U << step;
      const unsigned used = width << step;  // bits of a half
      const std::uint64_t field = (std::uint64_t{1} << used) - 1;
      for (unsigned at = 0; at < 64; at += 2 * half) {
        all[width].stay[step] |= field << at;
        all[width].move[step] |= field << (at + half);
      }
      all[width].shift[step] = half - used;
    }
  }
  return all;
}
inline constexpr std::array<GatherSteps, 9> kGatherSteps = make_gather_steps();

// What pext does with kBytesOfCode[code].values, for machines where it is slow or not there.
inline std::uint64_t gather_bits(std::uint64_t values, unsigned code) noexcept {
  const GatherSteps& steps = kGatherSteps[code_width(code)];
  for (unsigned step = 0; step < 3; ++step)
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
