// A frame of codec jpeg (docs/format.md), and what follows from what the head of a shard says of its file.
//
//   | the file's own bytes | zeros | index (index.hpp) | zeros |
//   0                      bytes   index_offset()      |       frame_bytes()
//                                  a multiple of 16            a multiple of 16
//
// So the geometry and the size of a frame are known before the frame is read. Plain data and functions that
// host and device share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/host_device.hpp"
#include "jpeg/header.hpp"
#include "jpeg/index.hpp"
#include "jpeg/layout.hpp"
#include "shard/jpeg_file.hpp"

namespace shard::jpeg {

inline constexpr std::uint32_t kFrameAlignment = 16;
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

// Where the index begins in the frame.
SHARD_EXACT constexpr std::uint64_t index_offset(const FrameFile& file) noexcept {
  return (std::uint64_t{file.bytes} + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

// The one size that a frame of this file has.
SHARD_EXACT constexpr std::uint64_t frame_bytes(const FrameFile& file) noexcept {
  const std::uint64_t end = index_offset(file) + index_bytes(geometry_of(file));
  return (end + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

// Refuses what no frame has: no bytes, sides beyond 1 to 65,500, components other than 1, 3 or 4, factors
// beyond 1 to 4 or that do not divide the largest, more than 10 blocks per MCU, factors other than 1 of a
// component by itself, another orientation than 1 to 8. Errors: corrupt, with the value and its bounds.
void check_frame_file(const FrameFile& file);

// `header`: parse_header() of a file of `file_bytes`. Errors: invalid_argument (another orientation than 1 to
// 8).
FrameFile frame_file_of(const Header& header, std::size_t file_bytes, std::uint32_t orientation);

// `index`: of this file, index_bytes(geometry_of(file)) long. Errors: invalid_argument (other sizes).
std::vector<std::byte> make_frame(const FrameFile& file, std::span<const std::byte> file_bytes,
                                  std::span<const std::byte> index);

// Views of a frame.
struct FrameParts {
  std::span<const std::byte> file;
  std::span<const std::byte> index;
};
// Errors: corrupt (another size than frame_bytes(), other bytes than zeros between and behind the parts).
FrameParts split_frame(const FrameFile& file, std::span<const std::byte> frame);

}  // namespace shard::jpeg
