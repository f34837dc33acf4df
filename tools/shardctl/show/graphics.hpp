// Pictures as the bytes that a terminal draws them from. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "shard/image/decode.hpp"

namespace shard::ctl {

enum class Graphics : std::uint8_t {
  // Characters U+2580, each of which is two pixels: any terminal with colours.
  blocks,
  // DEC's, with 256 colours made for the picture (https://vt100.net/docs/vt3xx-gp/chapter14.html).
  sixel,
  // https://sw.kovidgoyal.net/kitty/graphics-protocol/, the picture as PNG.
  kitty,
};

// The picture's upper left corner is at the cursor. Where the cursor is then, differs between terminals.
std::string kitty_picture(const image::RgbView& picture);
std::string sixel_picture(const image::RgbView& picture);

// One line of characters, without an end of line: rows 2 * line and 2 * line + 1 of the picture, a character
// for each column, and then spaces up to `columns`. A row below the picture has the terminal's background.
// `true_colors`: 24 bits; otherwise the 256 colours of xterm.
std::string blocks_line(const image::RgbView& picture, std::uint32_t line, std::uint32_t columns,
                        bool true_colors);

}  // namespace shard::ctl
