// One TIFF file in memory, opened with libtiff: what a page is, and its samples,
// row by row or block by block.
//
// libtiff's messages are kept here and never printed: an error, or a warning about damaged samples, is
// thrown. Each file has a handle of its own, so no file affects the next.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shard/image/decode.hpp"

namespace shard::image {

enum class TiffColor : std::uint8_t { gray, gray_inverted, palette, rgb, cmyk };

enum class TiffNumber : std::uint8_t { whole, negative_too, floating };

// rgb: what can become RGB of 8 bits. as_stored: bands of numbers, whatever they mean;
// not palettes, CMYK, YCbCr, and less than 8 bits.
enum class TiffMode : std::uint8_t { rgb, as_stored };

struct TiffPage {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int orientation = 1;
  TiffColor color = TiffColor::gray;
  unsigned bits = 8;     // of a sample: 1, 2, 4, 8, 16; less than 8 only with one sample
  unsigned samples = 1;  // of a pixel: 1 to 4
  // TiffMode::as_stored: bits are 8, 16, 32 or 64, and samples 1 to 4096.
  TiffNumber number = TiffNumber::whole;
  unsigned colors = 0;            // samples without alpha
  bool associated_alpha = false;  // the last sample; the others are multiplied with it
  bool separate = false;          // a plane per sample
  bool tiled = false;
  // What is read at once: one row, or, where planes are apart or tiled, a block for each plane.
  std::uint32_t block_width = 0;
  std::uint32_t block_height = 0;
  std::size_t block_row_bytes = 0;
  // What reading takes besides the RGB pixels.
  std::uint64_t memory_bytes = 0;
  std::vector<std::array<std::uint8_t, 3>> palette;

  unsigned planes() const noexcept { return separate ? samples : 1; }
  std::size_t block_bytes() const noexcept { return block_row_bytes * block_height; }
};

// Pixels of a page that are read at once. The last ones of a row and of a column are smaller.
struct TiffBlock {
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t columns = 0;
  std::uint32_t rows = 0;
};

class TiffFile {
 public:
  // Borrows `file`. Errors: corrupt, unsupported, not_found (no such page), resource.
  TiffFile(std::span<const std::byte> file, std::uint64_t max_pixels, OnWarning on_warning,
           TiffMode mode = TiffMode::rgb, std::uint32_t page = 0);
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;
  ~TiffFile();

  const TiffPage& page() const noexcept;
  // Reads the page block by block, from top to bottom, into `samples`, of block_bytes() for each plane, and
  // calls `take` after each. Samples are in the byte order of this machine, packed to whole bytes per row.
  // `cancel` may be null. Errors: corrupt, resource, cancelled.
  void read_blocks(std::uint8_t* samples, const std::atomic<bool>* cancel,
                   const std::function<void(const TiffBlock&)>& take);
  // Whether a warning about damaged samples was accepted.
  bool warned() const noexcept;

 private:
  void read_block(std::uint32_t x, std::uint32_t y, unsigned plane, std::uint8_t* out);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The numbers of the pages that are neither previews nor masks. Errors: corrupt, unsupported (none;
// more than 65535 pages).
std::vector<std::uint32_t> tiff_pages(std::span<const std::byte> file);
// Whether TiffMode::as_stored can read that page; otherwise it is for TiffMode::rgb.
// Errors: corrupt, unsupported, not_found (no such page).
bool is_read_as_stored(std::span<const std::byte> file, std::uint32_t page);

// "libtiff 4.5.0"
std::string tiff_version();

}  // namespace shard::image
