// What the head of a shard says of the JPEG file in a frame, and the geometry that follows from it. Plain
// data and functions that host and device share.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/layout.hpp"
#include "shard/jpeg_file.hpp"

namespace shard::jpeg {

inline constexpr std::uint32_t kMostPixelsOfSide = 65500;  // libjpeg's JPEG_MAX_DIMENSION

// Component `component` has h x v blocks per MCU, as in FrameFile::factors.
SHARD_EXACT constexpr std::uint32_t factors_of(std::uint32_t component, std::uint32_t h,
                                               std::uint32_t v) noexcept {
  return (h | v << 4) << (8 * component);
}

// All of the layout that follows from the size and the factors. Colour, tables and restart interval keep
// their defaults: they are in the file. `file` was checked, or only the layout is wrong.
SHARD_EXACT constexpr Layout geometry_of(const FrameFile& file) noexcept {
  Layout layout;
  layout.width = file.width();
  layout.height = file.height();
  layout.components = static_cast<std::uint8_t>(file.components());
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    if (file.h(c) > layout.h_max) layout.h_max = static_cast<std::uint8_t>(file.h(c));
    if (file.v(c) > layout.v_max) layout.v_max = static_cast<std::uint8_t>(file.v(c));
  }
  const std::uint32_t columns = kBlockSide * layout.h_max;
  const std::uint32_t rows = kBlockSide * layout.v_max;
  layout.mcu_columns = (layout.width + columns - 1) / columns;
  layout.mcu_rows = (layout.height + rows - 1) / rows;
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    Plane& plane = layout.planes[c];
    plane.h = static_cast<std::uint8_t>(file.h(c));
    plane.v = static_cast<std::uint8_t>(file.v(c));
    plane.width = (layout.width * plane.h + layout.h_max - 1U) / layout.h_max;
    plane.height = (layout.height * plane.v + layout.v_max - 1U) / layout.v_max;
    plane.columns = layout.mcu_columns * plane.h;
    plane.rows = layout.mcu_rows * plane.v;
    for (std::uint32_t block = 0; block < file.h(c) * file.v(c); ++block)
      if (layout.blocks_of_mcu < kMostBlocksOfMcu)
        layout.blocks[layout.blocks_of_mcu++] = {static_cast<std::uint8_t>(c),
                                                 static_cast<std::uint8_t>(block % plane.h),
                                                 static_cast<std::uint8_t>(block / plane.h)};
  }
  return layout;
}

// A pixel of the file's image, or where it is when that is upright.
struct Pixel {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
};

//   1 as is        2 mirrored        3 rotated 180    4 flipped
//   5 transposed   6 rotated 90 cw   7 transversed    8 rotated 90 ccw
SHARD_EXACT constexpr Pixel upright_place(const FrameFile& file, const Pixel& stored) noexcept {
  const std::uint32_t right = file.width() - 1 - stored.x;
  const std::uint32_t below = file.height() - 1 - stored.y;
  switch (file.orientation) {
    case 2:
      return {right, stored.y};
    case 3:
      return {right, below};
    case 4:
      return {stored.x, below};
    case 5:
      return {stored.y, stored.x};
    case 6:
      return {below, stored.x};
    case 7:
      return {below, right};
    case 8:
      return {stored.y, right};
    default:
      return stored;
  }
}

// The pixel of the file's image that is there when that is upright.
SHARD_EXACT constexpr Pixel stored_place(const FrameFile& file, const Pixel& upright) noexcept {
  const std::uint32_t right = file.upright_width() - 1 - upright.x;
  const std::uint32_t below = file.upright_height() - 1 - upright.y;
  switch (file.orientation) {
    case 2:
      return {right, upright.y};
    case 3:
      return {right, below};
    case 4:
      return {upright.x, below};
    case 5:
      return {upright.y, upright.x};
    case 6:
      return {upright.y, right};
    case 7:
      return {below, right};
    case 8:
      return {below, upright.x};
    default:
      return upright;
  }
}

}  // namespace shard::jpeg
