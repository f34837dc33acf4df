#include "shardctl/show/terminal_sheet.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/utf8.hpp"

namespace shard::ctl {
namespace {

constexpr std::uint32_t kTileColumns = 24;      // at least, unless the number of tiles per row is given
constexpr std::uint32_t kMostTileColumns = 80;  // of few tiles in a wide terminal
constexpr std::uint32_t kLeastTileColumns = 8;

// Characters that could move the cursor or change the terminal become question marks.
std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_sequence_length(text, i);
    const auto first = static_cast<unsigned char>(text[i]);
    const bool c1 = length == 2 && first == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (length == 0 || first < 0x20 || first == 0x7F || c1)
      out += '?';
    else
      out += text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

// With spaces up to `columns` code points.
std::string padded(std::string text, std::uint32_t columns) {
  const auto count = static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  text.append(columns > count ? columns - count : 0, ' ');
  return text;
}

void drop_trailing_spaces(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

TerminalSheet::TerminalSheet(const Terminal& terminal, std::uint64_t tiles, std::uint32_t each,
                             std::uint32_t columns)
    : terminal_(terminal) {
  if (terminal_.graphics == Graphics::blocks) {
    terminal_.cell_width = 1;
    terminal_.cell_height = 2;
  }
  std::uint32_t fit = std::max(terminal.columns / kTileColumns, 1U);
  if (each > 1) fit = fit >= each ? fit / each * each : std::min(each, terminal.columns / (kTileColumns / 2));
  if (columns != 0) fit = std::min(columns, terminal.columns / kLeastTileColumns);
  columns_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fit, 1, std::max<std::uint64_t>(tiles, 1)));
  tile_columns_ = std::clamp(terminal.columns / columns_, 2U, kMostTileColumns);
}

std::uint32_t TerminalSheet::most_side() const noexcept {
  // One column stays empty between pictures; a picture, its caption and the prompt fit on the screen.
  const std::uint32_t rows = terminal_.rows > 4 ? terminal_.rows - 3 : 1;
  return std::min((tile_columns_ - 1) * terminal_.cell_width, rows * terminal_.cell_height);
}

void TerminalSheet::start(image::Size cell) {
  const std::uint32_t longer = std::max({cell.width, cell.height, 1U});
  scale_ = terminal_.graphics == Graphics::blocks ? 1 : std::max(most_side() / longer, 1U);
  tile_rows_ = (cell.height * scale_ + terminal_.cell_height - 1) / terminal_.cell_height;
}

image::RgbView TerminalSheet::enlarged(const image::RgbView& picture) {
  if (scale_ == 1) return picture;
  const image::RgbView made{nullptr, picture.width * scale_, picture.height * scale_,
                            std::size_t{picture.width} * scale_ * 3};
  pixels_.clear();
  for (std::uint32_t y = 0; y < made.height; ++y) {
    const std::uint8_t* const row = picture.data + y / scale_ * picture.stride_bytes;
    for (std::uint32_t x = 0; x < made.width; ++x)
      pixels_.insert(pixels_.end(), row + std::size_t{x / scale_} * 3, row + std::size_t{x / scale_} * 3 + 3);
  }
  return {pixels_.data(), made.width, made.height, made.stride_bytes};
}

void TerminalSheet::put(std::uint64_t number, const image::RgbView& picture, const std::string& caption,
                        const Write& write) {
  if (number / columns_ != row_) finish(write);
  row_ = number / columns_;
  Tile& tile = tiles_.emplace_back();
  tile.column = static_cast<std::uint32_t>(number % columns_);
  tile.caption = printable(caption);
  if (terminal_.graphics == Graphics::kitty) tile.picture = kitty_picture(enlarged(picture));
  if (terminal_.graphics == Graphics::sixel) tile.picture = sixel_picture(enlarged(picture));
  if (terminal_.graphics == Graphics::blocks) {
    for (std::uint32_t line = 0; line < tile_rows_; ++line)
      tile.lines.push_back(blocks_line(picture, line, tile_columns_, terminal_.true_colors));
  }
}

void TerminalSheet::finish(const Write& write) {
  if (tiles_.empty()) return;
  std::string out;
  if (terminal_.graphics == Graphics::blocks) {
    for (std::uint32_t line = 0; line < tile_rows_; ++line) {
      std::string text;
      std::uint32_t column = 0;
      for (const Tile& tile : tiles_) {
        text.append(std::size_t{tile.column - column} * tile_columns_, ' ');
        text += tile.lines[line];
        column = tile.column + 1;
      }
      drop_trailing_spaces(text);
      out += text + "\n";
    }
  } else {
    // Empty lines first, so that the screen is not scrolled while positions are remembered.
    out.append(tile_rows_ + 1, '\n');
    out += fmt::format("\x1b[{}A", tile_rows_ + 1);
    for (const Tile& tile : tiles_) {
      out +=
          "\x1b"
          "7";  // remembers the cursor; 8 goes back
      if (tile.column != 0) out += fmt::format("\x1b[{}C", tile.column * tile_columns_);
      out += tile.picture +
             "\x1b"
             "8";
    }
    out += fmt::format("\x1b[{}B", tile_rows_);
  }
  std::string captions;
  std::uint32_t column = 0;
  for (const Tile& tile : tiles_) {
    captions.append(std::size_t{tile.column - column} * tile_columns_, ' ');
    captions += padded(tile.caption, tile_columns_);
    column = tile.column + 1;
  }
  drop_trailing_spaces(captions);
  write(out + captions + "\n");
  tiles_.clear();
}

}  // namespace shard::ctl
