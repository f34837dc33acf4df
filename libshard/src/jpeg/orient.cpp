#include "jpeg/orient.hpp"

#include <algorithm>

namespace shard::jpeg {
namespace {

// Rows and columns moved at a time, so that both sides stay in the first cache.
constexpr std::uint32_t kTile = 32;

// Where the upright pixel (0, 0) comes from, and how far the source moves for one column and one row of the
// result.
struct Walk {
  const std::uint8_t* start;
  std::ptrdiff_t column_step;
  std::ptrdiff_t row_step;
};

Walk walk_of(const PixelRows& image, std::uint32_t orientation) {
  const auto pixel = static_cast<std::ptrdiff_t>(image.channels);
  const auto stride = static_cast<std::ptrdiff_t>(image.stride_bytes);
  const std::ptrdiff_t right = pixel * (static_cast<std::ptrdiff_t>(image.width) - 1);
  const std::ptrdiff_t bottom = stride * (static_cast<std::ptrdiff_t>(image.height) - 1);
  switch (orientation) {
    case 2:
      return {image.data + right, -pixel, stride};
    case 3:
      return {image.data + bottom + right, -pixel, -stride};
    case 4:
      return {image.data + bottom, pixel, -stride};
    case 5:
      return {image.data, stride, pixel};
    case 6:
      return {image.data + bottom, -stride, pixel};
    case 7:
      return {image.data + bottom + right, -stride, -pixel};
    case 8:
      return {image.data + right, stride, -pixel};
    default:
      return {image.data, pixel, stride};
  }
}

template <std::uint32_t kChannels>
void turn(const PixelRows& image, std::uint32_t orientation, std::uint8_t* out) {
  const bool swapped = orientation >= 5;
  const std::uint32_t width = swapped ? image.height : image.width;
  const std::uint32_t height = swapped ? image.width : image.height;
  const std::size_t stride = std::size_t{width} * kChannels;
  const Walk walk = walk_of(image, orientation);
  for (std::uint32_t top = 0; top < height; top += kTile) {
    const std::uint32_t bottom = std::min(height, top + kTile);
    for (std::uint32_t left = 0; left < width; left += kTile) {
      const std::uint32_t right = std::min(width, left + kTile);
      for (std::uint32_t y = top; y < bottom; ++y) {
        std::uint8_t* to = out + y * stride + std::size_t{left} * kChannels;
        const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(y) * walk.row_step;
        for (std::uint32_t x = left; x < right; ++x, to += kChannels) {
          const std::uint8_t* from = walk.start + row + static_cast<std::ptrdiff_t>(x) * walk.column_step;
          for (std::uint32_t c = 0; c < kChannels; ++c) to[c] = from[c];
        }
      }
    }
  }
}

}  // namespace

void turn_upright(const PixelRows& image, std::uint32_t orientation, std::uint8_t* out) noexcept {
  if (image.channels == 1)
    turn<1>(image, orientation, out);
  else
    turn<3>(image, orientation, out);
}

}  // namespace shard::jpeg
