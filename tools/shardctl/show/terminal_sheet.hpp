// Tiles in a terminal: rows of pictures, a caption under each.
//
//     |<-- tile_columns -->|
//     picture              picture              ...     } tile_rows of characters
//     #3 ant               #17 bee              ...
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "shard/image/preprocess.hpp"
#include "shardctl/show/terminal.hpp"

namespace shard::ctl {

class TerminalSheet {
 public:
  using Write = std::function<void(std::string_view)>;

  // `tiles`: how many will come. `each`: tiles of a sample, which stay side by side if they fit.
  // `columns`: tiles per row; 0: as many as fit, each of about 24 characters.
  TerminalSheet(const Terminal& terminal, std::uint64_t tiles, std::uint32_t each, std::uint32_t columns);

  // The longer side that a picture may have, in pixels: those of the terminal, or half characters.
  std::uint32_t most_side() const noexcept;
  std::uint32_t characters() const noexcept { return tile_columns_ - 1; }
  // `cell`: at least as large as every picture that comes, and not larger than most_side(). Small ones are
  // enlarged by a whole number where pixels are the terminal's.
  void start(image::Size cell);
  // Tiles in ascending order; those that do not come are left blank. Writes a row when it is full.
  void put(std::uint64_t tile, const image::RgbView& picture, const std::string& caption, const Write& write);
  // Writes the last row.
  void finish(const Write& write);

 private:
  struct Tile {
    std::uint32_t column = 0;
    std::string picture;             // kitty, sixel
    std::vector<std::string> lines;  // blocks
    std::string caption;
  };
  image::RgbView enlarged(const image::RgbView& picture);

  Terminal terminal_;
  std::uint32_t columns_ = 1;  // tiles per row
  std::uint32_t tile_columns_ = 1;
  std::uint32_t tile_rows_ = 1;
  std::uint32_t scale_ = 1;
  std::uint64_t row_ = 0;
  std::vector<Tile> tiles_;  // of the row
  std::vector<std::uint8_t> pixels_;
};

}  // namespace shard::ctl
