// The layout of a JPEG whose image data are one interleaved scan: components, blocks, MCUs, pieces. Plain
// data that host and device share.
//
//   MCU of 4:2:0, six blocks in the order of the file     piece: 8 MCUs of a row, from one entry point to the
//                                                         next; the last piece of a row may have fewer
//     Y0 Y1   Cb   Cr                                      |0 1 2 3 4 5 6 7|8 9 10|
//     Y2 Y3                                                |0 1 2 3 4 5 6 7|8 9 10|   next MCU row
//
// ITU-T T.81: A.1.1 (dimensions of components), A.2 (order of blocks).
#pragma once

#include <cstdint>

#include "base/host_device.hpp"

namespace shard::jpeg {

inline constexpr std::uint32_t kMostComponents = 4;
inline constexpr std::uint32_t kMostBlocksOfMcu = 10;  // T.81, B.2.3
inline constexpr std::uint32_t kMcusPerPiece = 8;
inline constexpr std::uint32_t kBlockSide = 8;
inline constexpr std::uint32_t kBlockValues = 64;

// Position of coefficient k of the zigzag in a block of 8 rows of 8.
SHARD_EXACT constexpr std::uint32_t natural_order(std::uint32_t k) noexcept {
  constexpr std::uint8_t kOrder[kBlockValues] = {
      0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
      41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
      30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
  return kOrder[k < kBlockValues ? k : kBlockValues - 1];
}

// What the components mean, and so what decoding delivers.
enum class Colour : std::uint8_t {
  gray,  // 1 component  -> 1 channel
  ycc,   // Y, Cb, Cr    -> R, G, B
  rgb,   // R, G, B      -> R, G, B
  cmyk,  // 4 components -> as they are, as libjpeg's JCS_CMYK
  ycck,  // Y, Cb, Cr, K -> as libjpeg's JCS_CMYK: 255 - R, 255 - G, 255 - B, K
};

struct Plane {
  std::uint32_t width = 0;  // samples of the image; the rest of the last blocks is padding
  std::uint32_t height = 0;
  std::uint32_t columns = 0;  // blocks of all MCUs: mcu_columns * h
  std::uint32_t rows = 0;     // mcu_rows * v
  std::uint8_t h = 1;         // blocks of an MCU, across and down
  std::uint8_t v = 1;
  std::uint8_t quantization = 0;  // which of the file's tables
  std::uint8_t dc = 0;
  std::uint8_t ac = 0;
};

struct McuBlock {
  std::uint8_t component = 0;
  std::uint8_t x = 0;  // of the component's blocks in the MCU
  std::uint8_t y = 0;
};

// A component by itself has MCUs of one block, whatever its sampling factors say: they are 1 here.
struct Layout {
  std::uint32_t width = 0;  // pixels, 1 to 65,500
  std::uint32_t height = 0;
  std::uint32_t mcu_columns = 0;
  std::uint32_t mcu_rows = 0;
  std::uint32_t restart_interval = 0;  // MCUs; 0: none
  std::uint8_t components = 0;         // 1, 3 or 4
  std::uint8_t h_max = 1;
  std::uint8_t v_max = 1;
  std::uint8_t blocks_of_mcu = 0;  // 1 to 10
  Colour colour = Colour::gray;
  Plane planes[kMostComponents];
  McuBlock blocks[kMostBlocksOfMcu];

  SHARD_EXACT constexpr std::uint32_t pieces_of_row() const noexcept {
    return (mcu_columns + kMcusPerPiece - 1) / kMcusPerPiece;
  }
  SHARD_EXACT constexpr std::uint32_t pieces() const noexcept { return pieces_of_row() * mcu_rows; }
  SHARD_EXACT constexpr std::uint32_t mcus() const noexcept { return mcu_columns * mcu_rows; }
  // Whether a restart marker stands before this MCU.
  SHARD_EXACT constexpr bool restarts_at(std::uint32_t mcu) const noexcept {
    return restart_interval != 0 && mcu != 0 && mcu < mcus() && mcu % restart_interval == 0;
  }
  // Channels of what is delivered: 1, 3 or 4.
  SHARD_EXACT constexpr std::uint32_t channels() const noexcept { return components; }
};

}  // namespace shard::jpeg
