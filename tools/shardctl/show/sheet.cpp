#include "shardctl/show/sheet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/text.hpp"
#include "shard/error.hpp"

namespace shard::ctl {

void too_many_samples(std::uint64_t count) {
  throw Error(ErrorCode::resource, fmt::format("a sheet of {} would have more than {} pixels: show fewer",
                                               cli::counted(count, "sample"), kMaxSheetPixels));
}

Sheet::Sheet(image::Size cell, std::uint64_t tiles, std::uint32_t asked_columns) {
  const auto columns = asked_columns != 0
                           ? std::min<std::uint64_t>(asked_columns, tiles)
                           : static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(tiles))));
  const std::uint64_t rows = (tiles + columns - 1) / columns;
  picture_height_ = cell.height;
  text_scale_ = cell.width >= 320 ? 2 : 1;
  cell_width_ = std::max(cell.width, 8 * kGlyphWidth) + kGap;
  cell_height_ = cell.height + kGap + kGlyphHeight * text_scale_ + kGap;
  const std::uint64_t width = columns * cell_width_ + kGap;
  const std::uint64_t height = rows * cell_height_ + kGap;
  if (width > kMaxSheetPixels || height > kMaxSheetPixels || width * height > kMaxSheetPixels)
    too_many_samples(tiles);
  columns_ = static_cast<std::uint32_t>(columns);
  width_ = static_cast<std::uint32_t>(width);
  height_ = static_cast<std::uint32_t>(height);
  pixels_.assign(std::size_t{width_} * height_ * 3, 255);
}

void Sheet::put(std::uint64_t tile, const image::RgbView& picture, const std::string& caption) {
  const auto left = static_cast<std::uint32_t>(kGap + tile % columns_ * cell_width_);
  const auto top = static_cast<std::uint32_t>(kGap + tile / columns_ * cell_height_);
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    std::copy_n(picture.data + y * picture.stride_bytes, std::size_t{picture.width} * 3,
                pixels_.begin() + static_cast<std::ptrdiff_t>(((std::size_t{top} + y) * width_ + left) * 3));
  }
  draw_text({pixels_, width_, height_}, left, top + picture_height_ + kGap, text_scale_, caption);
}

}  // namespace shard::ctl
