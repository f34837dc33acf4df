// Pixels turned upright by EXIF orientation 1 to 8, as Pillow's ImageOps.exif_transpose does it.
//
//   1 as is        2 mirrored        3 rotated 180    4 flipped
//   5 transposed   6 rotated 90 cw   7 transversed    8 rotated 90 ccw
#pragma once

#include <cstddef>
#include <cstdint>

namespace shard::jpeg {

// [row, column, channel] of bytes, 1 or 3 channels.
struct PixelRows {
  const std::uint8_t* data = nullptr;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 3;
  std::size_t stride_bytes = 0;
};

// Fills `out` with the rows of the upright image, one after the other; from 5 on they have `height` pixels.
// `orientation`: 2 to 8. `out` does not overlap the image.
void turn_upright(const PixelRows& image, std::uint32_t orientation, std::uint8_t* out) noexcept;

// The same for some rows, from `first_row` on, of an image of `height` rows, while they are hot in cache:
// `out` is the whole upright image.
void turn_rows(const PixelRows& rows, std::uint32_t first_row, std::uint32_t height,
               std::uint32_t orientation, std::uint8_t* out) noexcept;

}  // namespace shard::jpeg
