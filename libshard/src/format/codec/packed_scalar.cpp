// The reference coder of a strip: plain and short. The vector code must give the same bytes.
#include <array>

#include "format/codec/packed_frame.hpp"

namespace shard::packed {
namespace {

// 2 rows of a strip, of one channel.
using Residuals = std::array<std::array<int, kStripColumns>, 2>;

// The row above and the current one; the column before the first is at index 0.
struct Rows {
  std::array<std::uint8_t, kStripColumns + 1> above;
  std::array<std::uint8_t, kStripColumns + 1> current;

  // Before the first row everything outside of the strip has the value `seed`.
  void start(std::uint8_t seed) {
    above.fill(seed);
    current.fill(seed);
  }
  void next() { above = current; }
  std::uint8_t prediction(std::size_t column) const {
    return predict(current[column], above[column + 1], above[column]);
  }
};

// The difference of two bytes, from -128 to 127.
int difference(std::uint8_t a, std::uint8_t b) {
  const auto byte = static_cast<std::uint8_t>(a - b);
  return byte < 128 ? byte : byte - 256;
}

template <class Byte>
Byte& at(const StripPixels<Byte>& pixels, std::size_t row, std::size_t column, std::size_t channel) {
  return pixels
      .first[row * pixels.row_stride + column * pixels.column_stride + channel * pixels.channel_stride];
}

std::uint8_t coded_value(const StripPixels<const std::uint8_t>& pixels, std::size_t row, std::size_t column,
                         std::uint32_t channel) {
  const std::uint8_t value = at(pixels, row, column, channel);
  if (!less_green(pixels.channels, channel)) return value;
  return static_cast<std::uint8_t>(value - at(pixels, row, column, 1) + 128);
}

bool fits(const Residuals& residuals, std::size_t group, unsigned code) {
  const int low = -static_cast<int>(code_bias(code));
  const int high = low + (1 << code_width(code)) - 1;
  for (const auto& row : residuals) {
    for (std::size_t i = 0; i < kGroupColumns; ++i) {
      const int value = row[group * kGroupColumns + i];
      if (value < low || value > high) return false;
    }
  }
  return true;
}

// The first that fits, in the order of widths.
unsigned choose_code(const Residuals& residuals, std::size_t group) {
  for (unsigned code : {0U, 1U, 9U, 2U, 10U, 3U, 11U, 4U, 12U, 5U, 13U, 6U, 14U, 7U, 15U}) {
    if (fits(residuals, group, code)) return code;
  }
  return 8;
}

// 16 values of `width` bits one after the other, from the lowest bit of the first byte on.
std::uint8_t* put_group(const Residuals& residuals, std::size_t group, unsigned code, std::uint8_t* out) {
  const unsigned width = code_width(code);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const auto& row : residuals) {
    for (std::size_t i = 0; i < kGroupColumns; ++i) {
      const int value = row[group * kGroupColumns + i] + static_cast<int>(code_bias(code));
      bits |= static_cast<std::uint32_t>(value) << held;
      for (held += width; held >= 8; held -= 8, bits >>= 8) *out++ = static_cast<std::uint8_t>(bits);
    }
  }
  return out;
}

const std::uint8_t* get_group(const std::uint8_t* in, unsigned code, std::size_t group,
                              Residuals& residuals) {
  const unsigned width = code_width(code);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (auto& row : residuals) {
    for (std::size_t i = 0; i < kGroupColumns; ++i) {
      for (; held < width; held += 8) bits |= std::uint32_t{*in++} << held;
      const std::uint32_t value = bits & ((1U << width) - 1);
      row[group * kGroupColumns + i] = static_cast<int>(value) - static_cast<int>(code_bias(code));
      bits >>= width;
      held -= width;
    }
  }
  return in;
}

std::size_t encode_strip(const StripPixels<const std::uint8_t>& pixels, std::uint8_t* out) {
  const Shape shape{pixels.channels, pixels.height, pixels.columns};
  std::array<Rows, kMaxChannels> rows{};
  for (std::uint32_t channel = 0; channel < kMaxChannels; ++channel) {
    out[channel] = channel < pixels.channels ? coded_value(pixels, 0, 0, channel) : std::uint8_t{0};
    rows[channel].start(out[channel]);
  }
  std::uint8_t* codes = out + kSeedBytes;
  std::uint8_t* bits = codes + shape.code_bytes();
  for (std::size_t pair = 0; pair < shape.row_pairs(); ++pair) {
    for (std::uint32_t channel = 0; channel < pixels.channels; ++channel) {
      Residuals residuals{};  // 0 beyond the strip's columns and rows
      for (std::size_t odd = 0; odd < 2 && 2 * pair + odd < pixels.height; ++odd) {
        for (std::size_t column = 0; column < pixels.columns; ++column) {
          const std::uint8_t value = coded_value(pixels, 2 * pair + odd, column, channel);
          residuals[odd][column] = difference(value, rows[channel].prediction(column));
          rows[channel].current[column + 1] = value;
        }
        rows[channel].next();
      }
      for (std::size_t group = 0; group < kGroups; ++group) {
        const unsigned code = choose_code(residuals, group);
        if (group % 2 == 0)
          *codes = static_cast<std::uint8_t>(code);
        else
          *codes++ |= static_cast<std::uint8_t>(code << 4);
        bits = put_group(residuals, group, code, bits);
      }
    }
  }
  return static_cast<std::size_t>(bits - out);
}

void decode_strip(const std::uint8_t* strip, const StripPixels<std::uint8_t>& pixels) {
  const Shape shape{pixels.channels, pixels.height, pixels.columns};
  std::array<Rows, kMaxChannels> rows{};
  for (std::uint32_t channel = 0; channel < pixels.channels; ++channel) rows[channel].start(strip[channel]);
  const std::uint8_t* codes = strip + kSeedBytes;
  const std::uint8_t* bits = codes + shape.code_bytes();
  for (std::size_t pair = 0; pair < shape.row_pairs(); ++pair) {
    for (std::uint32_t channel = 0; channel < pixels.channels; ++channel) {
      Residuals residuals{};
      for (std::size_t group = 0; group < kGroups; ++group) {
        const unsigned code = group % 2 == 0 ? *codes & 15U : static_cast<unsigned>(*codes++ >> 4);
        bits = get_group(bits, code, group, residuals);
      }
      for (std::size_t odd = 0; odd < 2 && 2 * pair + odd < pixels.height; ++odd) {
        for (std::size_t column = 0; column < pixels.columns; ++column) {
          const int value = rows[channel].prediction(column) + residuals[odd][column];
          rows[channel].current[column + 1] = static_cast<std::uint8_t>(value);
          at(pixels, 2 * pair + odd, column, channel) = static_cast<std::uint8_t>(value);
        }
        rows[channel].next();
      }
    }
    for (std::size_t row = 2 * pair; row < 2 * pair + 2 && row < pixels.height; ++row) {
      for (std::size_t column = 0; pixels.channels >= 3 && column < pixels.columns; ++column) {
        const int green = at(pixels, row, column, 1) + 128;
        for (std::size_t channel : {0U, 2U}) {
          std::uint8_t& value = at(pixels, row, column, channel);
          value = static_cast<std::uint8_t>(value + green);
        }
      }
    }
  }
}

}  // namespace

Kernels scalar_kernels() noexcept { return {encode_strip, decode_strip}; }

}  // namespace shard::packed
