// A 5x7 bitmap font for captions: printable ASCII, every other character is drawn as '?'.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shard::ctl {

inline constexpr std::uint32_t kGlyphWidth = 6;   // with one column of space
inline constexpr std::uint32_t kGlyphHeight = 8;  // with one row of space

// Red, green, blue.
using Color = std::array<std::uint8_t, 3>;

// An RGB picture that is drawn on; rows of width x 3 bytes without gaps.
struct Canvas {
  std::span<std::uint8_t> pixels;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

// The top left corner at (left, top), each dot `scale` pixels wide; what falls outside the canvas is
// not drawn. `color`: black by default. Returns the columns used.
std::uint32_t draw_text(const Canvas& canvas, std::uint32_t left, std::uint32_t top, std::uint32_t scale,
                        std::string_view utf8, const Color& color = {});

}  // namespace shard::ctl
