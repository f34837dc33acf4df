// All tiles on one white picture, a caption under each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shard/image/preprocess.hpp"
#include "shardctl/draw/font.hpp"

namespace shard::ctl {

class Sheet {
 public:
  // `cell`: of the largest tile. `columns`: tiles per row; 0: about a square of them.
  // Throws resource: it would have more than kMaxSheetPixels pixels.
  Sheet(image::Size cell, std::uint64_t tiles, std::uint32_t columns);

  // Characters of a caption.
  std::uint32_t characters() const noexcept { return (cell_width_ - kGap) / (kGlyphWidth * text_scale_); }
  void put(std::uint64_t tile, const image::RgbView& picture, const std::string& caption);
  // Valid as long as the sheet.
  image::RgbView view() const noexcept { return {pixels_.data(), width_, height_, std::size_t{width_} * 3}; }

 private:
  static constexpr std::uint32_t kGap = 4;  // white pixels around tiles and captions

  std::uint32_t columns_ = 0;
  std::uint32_t cell_width_ = 0;
  std::uint32_t cell_height_ = 0;
  std::uint32_t picture_height_ = 0;  // of a cell, above its caption
  std::uint32_t text_scale_ = 1;
  std::uint32_t width_ = 0;
  std::uint32_t height_ = 0;
  std::vector<std::uint8_t> pixels_;
};

inline constexpr std::uint64_t kMaxSheetPixels = 178'956'970;
// Throws resource: `count` samples are too many for one picture.
[[noreturn]] void too_many_samples(std::uint64_t count);

}  // namespace shard::ctl
