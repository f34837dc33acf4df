// Which MCUs the pixels of a box need, and which pieces have them. Triangle filters see one sample beyond the
// box on each side.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/frame_file.hpp"
#include "jpeg/layout.hpp"
#include "jpeg/upsample.hpp"

namespace shard::jpeg {

// Pixels, inside the image, not empty.
struct PixelBox {
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

// The box of the file's image that is `upright` when that is turned upright.
SHARD_EXACT constexpr PixelBox stored_box(const FrameFile& file, const PixelBox& upright) noexcept {
  const Pixel a = stored_place(file, {upright.left, upright.top});
  const Pixel b = stored_place(file, {upright.left + upright.width - 1, upright.top + upright.height - 1});
  const std::uint32_t left = a.x < b.x ? a.x : b.x;
  const std::uint32_t top = a.y < b.y ? a.y : b.y;
  return {left, top, a.x + b.x - 2 * left + 1, a.y + b.y - 2 * top + 1};
}

// Half-open.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  SHARD_EXACT constexpr std::uint32_t size() const noexcept { return end - begin; }
};

struct McuWindow {
  Range rows;
  Range columns;
};

// The MCUs with the samples of pixels [first, first + count) of one axis. `factor` of `largest`: blocks per
// MCU of the component, `size`: its samples.
SHARD_EXACT constexpr Range mcus_of_pixels(std::uint32_t first, std::uint32_t count, std::uint32_t factor,
                                           std::uint32_t largest, std::uint32_t size,
                                           bool triangle) noexcept {
  std::uint32_t low = first * factor / largest;
  std::uint32_t high = (first + count - 1) * factor / largest;
  if (triangle) {
    low = low == 0 ? 0 : low - 1;
    high = high + 1 < size ? high + 1 : size - 1;
  }
  return {low / (kBlockSide * factor), high / (kBlockSide * factor) + 1};
}

SHARD_EXACT constexpr McuWindow needed_mcus(const Layout& layout, const PixelBox& box) noexcept {
  McuWindow window{{layout.mcu_rows, 0}, {layout.mcu_columns, 0}};
  for (std::uint32_t c = 0; c < layout.components; ++c) {
    const Plane& plane = layout.planes[c];
    const Upsampling way = upsampling_of(layout, c);
    const bool across = way == Upsampling::across || way == Upsampling::both;
    const bool down = way == Upsampling::down || way == Upsampling::both;
    const Range rows = mcus_of_pixels(box.top, box.height, plane.v, layout.v_max, plane.height, down);
    const Range columns = mcus_of_pixels(box.left, box.width, plane.h, layout.h_max, plane.width, across);
    if (rows.begin < window.rows.begin) window.rows.begin = rows.begin;
    if (rows.end > window.rows.end) window.rows.end = rows.end;
    if (columns.begin < window.columns.begin) window.columns.begin = columns.begin;
    if (columns.end > window.columns.end) window.columns.end = columns.end;
  }
  return window;
}

// The pieces of one row that have these columns.
SHARD_EXACT constexpr Range pieces_of_columns(const Range& columns) noexcept {
  return {columns.begin / kMcusPerPiece, (columns.end + kMcusPerPiece - 1) / kMcusPerPiece};
}

// The columns of these pieces.
SHARD_EXACT constexpr Range columns_of_pieces(const Layout& layout, const Range& pieces) noexcept {
  const std::uint32_t end = pieces.end * kMcusPerPiece;
  return {pieces.begin * kMcusPerPiece, end < layout.mcu_columns ? end : layout.mcu_columns};
}

}  // namespace shard::jpeg
