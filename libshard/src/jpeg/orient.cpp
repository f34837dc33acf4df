#include "jpeg/orient.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace shard::jpeg {
namespace {

// Rows and columns moved at a time, so that both sides stay in the first cache.
constexpr std::uint32_t kTile = 32;

// Where the upright pixel (0, 0) comes from, and how far the source moves for one column and one row of the
// result: bytes from the stored pixel (0, 0).
struct Walk {
  std::ptrdiff_t start;
  std::ptrdiff_t column_step;
  std::ptrdiff_t row_step;
};

// `height`: of the stored image.
Walk walk_of(const PixelRows& image, std::uint32_t height, std::uint32_t orientation) {
  const auto pixel = static_cast<std::ptrdiff_t>(image.channels);
  const auto stride = static_cast<std::ptrdiff_t>(image.stride_bytes);
  const std::ptrdiff_t right = pixel * (static_cast<std::ptrdiff_t>(image.width) - 1);
  const std::ptrdiff_t bottom = stride * (static_cast<std::ptrdiff_t>(height) - 1);
  switch (orientation) {
    case 2:
      return {right, -pixel, stride};
    case 3:
      return {bottom + right, -pixel, -stride};
    case 4:
      return {bottom, pixel, -stride};
    case 5:
      return {0, stride, pixel};
    case 6:
      return {bottom, -stride, pixel};
    case 7:
      return {bottom + right, -stride, -pixel};
    case 8:
      return {right, stride, -pixel};
    default:
      return {0, pixel, stride};
  }
}

std::uint64_t load_pixel(const std::uint8_t* from) {
  std::uint32_t pixel = 0;
  std::memcpy(&pixel, from, sizeof pixel);
  return pixel;
}

// Four RGB pixels, `step` apart in the source: 12 bytes as two words. Reads a byte behind each pixel.
void copy_four_pixels(const std::uint8_t* from, std::ptrdiff_t step, std::uint8_t* to) {
  const std::uint64_t third = load_pixel(from + 2 * step);
  const std::uint64_t low =
      (load_pixel(from) & 0xFFFFFFU) | (load_pixel(from + step) & 0xFFFFFFU) << 24 | third << 48;
  const auto high = static_cast<std::uint32_t>((third >> 16 & 0xFFU) | load_pixel(from + 3 * step) << 8);
  std::memcpy(to, &low, sizeof low);
  std::memcpy(to + sizeof low, &high, sizeof high);
}

// A part of the result.
struct Area {
  std::uint32_t left;
  std::uint32_t top;
  std::uint32_t right;
  std::uint32_t bottom;
};

// `source`: the stored pixel that `walk` starts from; `end`: behind the last one.
template <std::uint32_t kChannels>
void turn_tile(const std::uint8_t* source, const std::uint8_t* end, const Walk& walk, const Area& tile,
               std::uint8_t* out, std::size_t stride) {
  const auto at = [&](std::uint32_t x, std::uint32_t y) {
    return source + (static_cast<std::ptrdiff_t>(x - tile.left) * walk.column_step +
                     static_cast<std::ptrdiff_t>(y - tile.top) * walk.row_step);
  };
  const std::uint8_t* const last =
      std::max({at(tile.left, tile.top), at(tile.right - 1, tile.top), at(tile.left, tile.bottom - 1),
                at(tile.right - 1, tile.bottom - 1)});
  // Little-endian words, and a byte behind the last pixel of the tile.
  const bool by_words =
      kChannels == 3 && std::endian::native == std::endian::little && end - last > std::ptrdiff_t{kChannels};
  for (std::uint32_t y = tile.top; y < tile.bottom; ++y) {
    std::uint8_t* to = out + y * stride + std::size_t{tile.left} * kChannels;
    std::uint32_t x = tile.left;
    for (; by_words && tile.right - x >= 4; x += 4, to += 4 * kChannels)
      copy_four_pixels(at(x, y), walk.column_step, to);
    for (; x < tile.right; ++x, to += kChannels) std::memcpy(to, at(x, y), kChannels);
  }
}

template <std::uint32_t kChannels>
void turn(const PixelRows& rows, std::uint32_t first_row, std::uint32_t height, std::uint32_t orientation,
          std::uint8_t* out) {
  const bool swapped = orientation >= 5;
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const std::uint32_t first = from_bottom ? height - first_row - rows.height : first_row;
  const Area area = swapped ? Area{first, 0, first + rows.height, rows.width}
                            : Area{0, first, rows.width, first + rows.height};
  const std::size_t stride = std::size_t{swapped ? height : rows.width} * kChannels;
  const Walk walk = walk_of(rows, height, orientation);
  const auto before = static_cast<std::ptrdiff_t>(first_row * rows.stride_bytes);
  const std::uint8_t* const end =
      rows.data + (rows.height - 1) * rows.stride_bytes + std::size_t{rows.width} * kChannels;
  for (std::uint32_t top = area.top; top < area.bottom; top += kTile)
    for (std::uint32_t left = area.left; left < area.right; left += kTile) {
      const std::ptrdiff_t from = walk.start + static_cast<std::ptrdiff_t>(left) * walk.column_step +
                                  static_cast<std::ptrdiff_t>(top) * walk.row_step;
      turn_tile<kChannels>(
          rows.data + (from - before), end, walk,
          {left, top, std::min(area.right, left + kTile), std::min(area.bottom, top + kTile)}, out, stride);
    }
}

}  // namespace

void turn_rows(const PixelRows& rows, std::uint32_t first_row, std::uint32_t height,
               std::uint32_t orientation, std::uint8_t* out) noexcept {
  if (rows.channels == 1)
    turn<1>(rows, first_row, height, orientation, out);
  else
    turn<3>(rows, first_row, height, orientation, out);
}

void turn_upright(const PixelRows& image, std::uint32_t orientation, std::uint8_t* out) noexcept {
  turn_rows(image, 0, image.height, orientation, out);
}

}  // namespace shard::jpeg
