// What the terminal can draw, found out by asking it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "shardctl/show/graphics.hpp"

namespace shard::ctl {

struct Terminal {
  Graphics graphics = Graphics::blocks;
  // Colours of 24 bits (COLORTERM); otherwise 256.
  bool true_colors = false;
  // Characters per line, and lines.
  std::uint32_t columns = 80;
  std::uint32_t rows = 24;
  // Pixels of a character.
  std::uint32_t cell_width = 10;
  std::uint32_t cell_height = 20;
};

// What a terminal has answered to kTerminalQuery.
struct TerminalAnswer {
  bool kitty = false;
  bool sixel = false;
  // Pixels of a character; 0: it did not say.
  std::uint32_t cell_width = 0;
  std::uint32_t cell_height = 0;
  // Every terminal answers the last question, so nothing more will come.
  bool complete = false;
};

// Does it know kitty's protocol (with a picture of one pixel, which is not shown)? How large is a character
// (XTWINOPS 16)? What else can it do (DA1)?
inline constexpr std::string_view kTerminalQuery = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[16t\x1b[c";
// `bytes`: all that has come. Anything else among them, such as typed keys, is passed over.
TerminalAnswer parse_terminal_answer(std::string_view bytes);

// The terminal that standard output is, or one of 80 columns. `graphics`: is not asked for. Waits at most a
// second for answers, and asks only if this process is in the terminal's foreground.
Terminal find_terminal(std::optional<Graphics> graphics);

// Whether standard output is a terminal that knows escape codes.
bool writes_to_terminal();

}  // namespace shard::ctl
