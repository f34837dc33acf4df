// JPEGs made and read by libjpeg-turbo, for comparison with the kernels' reference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shard::testing {

struct JpegOptions {
  std::uint32_t width = 16;
  std::uint32_t height = 16;
  int components = 3;  // 1: gray, 3: YCbCr or RGB, 4: CMYK or YCCK
  bool as_is = false;  // RGB, CMYK: no colour transform
  std::vector<std::array<int, 2>> factors = {{1, 1}, {1, 1}, {1, 1}, {1, 1}};  // h, v of each component
  int quality = 90;
  bool wide_tables = false;    // quantisation values beyond 255, in tables of 16 bits
  bool table_of_each = false;  // one quantisation table and one pair of Huffman tables per component
  bool optimize = false;
  int restart_interval = 0;  // MCUs
  bool progressive = false;
  bool arithmetic = false;
  bool scan_of_each = false;  // one scan per component

  std::string text() const;  // what a failing test prints
};

// `samples`: components of the pixels as they are stored before any transform (R, G, B; C, M, Y, K).
std::vector<std::byte> encode_jpeg(const JpegOptions& options, std::span<const std::uint8_t> samples);

struct JpegPixels {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 0;
  std::vector<std::uint8_t> values;
  bool operator==(const JpegPixels&) const = default;
};

// What libjpeg-turbo decodes by default: gray, RGB or CMYK. Error if it warns, unless `accept`.
JpegPixels decode_jpeg(std::span<const std::byte> file, bool accept = false);

// All coefficients of all components, block by block; those of real blocks only.
std::vector<std::vector<std::int16_t>> coefficients_of(std::span<const std::byte> file);

}  // namespace shard::testing
