#include "image/pixels/orient.hpp"

#include <algorithm>

namespace shard::image {
namespace {

constexpr std::uint32_t kTile =
    32;  // rows and columns moved at a time, so that both sides stay in the first cache

// Where the upright pixel (0, 0) comes from, and how far the source moves for one column and one row of the
// result.
struct Walk {
  const std::uint8_t* start;
  std::ptrdiff_t column_step;
  std::ptrdiff_t row_step;
};

Walk walk_of(const RgbView& image, int orientation) {
  const auto stride = static_cast<std::ptrdiff_t>(image.stride_bytes);
  const std::ptrdiff_t right = 3 * (static_cast<std::ptrdiff_t>(image.width) - 1);
  const std::ptrdiff_t bottom = stride * (static_cast<std::ptrdiff_t>(image.height) - 1);
  switch (orientation) {
    case 2:
      return {image.data + right, -3, stride};
    case 3:
      return {image.data + bottom + right, -3, -stride};
    case 4:
      return {image.data + bottom, 3, -stride};
    case 5:
      return {image.data, stride, 3};
    case 6:
      return {image.data + bottom, -stride, 3};
    case 7:
      return {image.data + bottom + right, -stride, -3};
    case 8:
      return {image.data + right, stride, -3};
    default:
      return {image.data, 3, stride};
  }
}

}  // namespace

RgbView turn_upright(const RgbView& image, int orientation, PixelBuffer& buffer) {
  if (orientation < 2 || orientation > 8 || image.width == 0 || image.height == 0) return image;
  const bool swapped = orientation >= 5;
  const std::uint32_t width = swapped ? image.height : image.width;
  const std::uint32_t height = swapped ? image.width : image.height;
  const std::size_t stride = std::size_t{width} * 3;
  std::uint8_t* out = buffer.reserve(stride * height);
  const Walk walk = walk_of(image, orientation);

  for (std::uint32_t top = 0; top < height; top += kTile) {
    const std::uint32_t bottom = std::min(height, top + kTile);
    for (std::uint32_t left = 0; left < width; left += kTile) {
      const std::uint32_t right = std::min(width, left + kTile);
      for (std::uint32_t y = top; y < bottom; ++y) {
        std::uint8_t* to = out + y * stride + std::size_t{left} * 3;
        const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(y) * walk.row_step;
        for (std::uint32_t x = left; x < right; ++x, to += 3) {
          const std::uint8_t* from = walk.start + row + static_cast<std::ptrdiff_t>(x) * walk.column_step;
          to[0] = from[0];
          to[1] = from[1];
          to[2] = from[2];
        }
      }
    }
  }
  return {out, width, height, stride};
}

}  // namespace shard::image
