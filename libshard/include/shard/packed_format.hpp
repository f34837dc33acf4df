// Codec packed: the constants of the format (docs/format.md), for writing a decoder.
//
//   frame  [header, 8 bytes][end of each strip: u32, in units of 16 bytes][zeros][strip 0][strip 1]...
//   strip  [seeds, 4 bytes][codes: 2 bytes for each pair of rows and channel][groups of values][zeros]
//
// A strip is 32 columns of all rows and channels. It starts at a multiple of 16 bytes and can be decoded
// without the others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace shard::packed {

inline constexpr std::uint8_t kVersion = 1;
// Modes of a frame.
inline constexpr std::uint8_t kStored = 0;
inline constexpr std::uint8_t kPacked = 1;
inline constexpr std::size_t kAlignment = 16;
inline constexpr std::size_t kHeaderBytes = 8;
inline constexpr std::size_t kStoredBegin = 16;
inline constexpr std::size_t kStripColumns = 32;
// A group is 8 columns of 2 rows: 16 values.
inline constexpr std::size_t kGroupColumns = 8;
inline constexpr std::size_t kGroups = kStripColumns / kGroupColumns;
inline constexpr std::size_t kSeedBytes = 4;
inline constexpr std::size_t kMaxChannels = 4;
inline constexpr unsigned kCodes = 16;

// A group's code gives the width, which is the number of bits per value, and the bias, which is subtracted:
//   code       0   1 ... 8            9 ... 15
//   width      0   code               code - 8
//   bias       0   2^(width - 1)      2^(width - 1) - 1
// So the values of a group are in [-bias, 2^width - 1 - bias].
constexpr unsigned code_width(unsigned code) noexcept { return code <= 8 ? code : code - 8; }
constexpr unsigned code_bias(unsigned code) noexcept {
  return code == 0 ? 0 : (1U << (code_width(code) - 1)) - (code > 8 ? 1 : 0);
}

struct Shape {
  // 1 to 4.
  std::uint32_t channels = 0;
  // 1 to 65535.
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  constexpr std::size_t strips() const noexcept { return (width + kStripColumns - 1) / kStripColumns; }
  constexpr std::size_t row_pairs() const noexcept { return (std::size_t{height} + 1) / 2; }
  // Of a strip.
  constexpr std::size_t code_bytes() const noexcept { return 2 * channels * row_pairs(); }
  constexpr std::size_t pixels_bytes() const noexcept { return std::size_t{channels} * height * width; }
  constexpr std::size_t first_strip() const noexcept {
    return (kHeaderBytes + 4 * strips() + kAlignment - 1) / kAlignment * kAlignment;
  }
};

// With three or four channels, green is subtracted from red and blue.
constexpr bool less_green(std::uint32_t channels, std::uint32_t channel) noexcept {
  return channels >= 3 && (channel == 0 || channel == 2);
}

// Median edge: the median of left, up and left + up - up_left, in bytes (LOCO-I: Weinberger, Seroussi,
// Sapiro, 2000).
constexpr std::uint8_t predict(std::uint8_t left, std::uint8_t up, std::uint8_t up_left) noexcept {
  const std::uint8_t low = std::min(left, up);
  const std::uint8_t high = std::max(left, up);
  return static_cast<std::uint8_t>(left + up - std::clamp(up_left, low, high));
}

}  // namespace shard::packed
