// PNG files through libspng: every colour type and bit depth, interlaced or not. Alpha and tRNS are dropped;
// 16 bits keep the high byte.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "image/pixels/stored_image.hpp"
#include "shard/image/decode.hpp"
#include "shard/image/wide.hpp"

namespace shard::image {

// One file. If it is not interlaced, it is read row by row, with the memory of three stored rows.
//
//   read_row() -> expand() any part of that row -> ... -> finish()
//
// A consumer must not use the pixels before finish() returned. Errors: corrupt (also a wrong CRC),
// unsupported, resource (TooManyPixels; no memory; more memory than the bound on pixels allows), cancelled.
class PngReader {
 public:
  // Reads the header, and how the image is to be turned. Borrows `file` and `options.cancel`.
  PngReader(std::span<const std::byte> file, const DecodeOptions& options);
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader();

  const ImageInfo& info() const noexcept;
  bool comes_by_rows() const noexcept;  // not interlaced
  // The memory that decoding takes: a few rows, or the image if it is interlaced or must be turned upright.
  std::uint64_t memory_bytes() const noexcept;

  void read_row();  // the next one, at most info().height times
  // RGB of the columns [column, column + count) of the row read last.
  void expand(std::uint32_t column, std::uint32_t count, std::uint8_t* rgb) const;
  // Of interlaced files: all rows, info().width x 3 bytes each.
  void read_interlaced(std::uint8_t* rgb);
  // Reads what is left and checks the file to its end.
  void finish();
  // Warning::few_bits, after finish().
  WarningSet warnings() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Errors: those of PngReader.
ImageInfo read_png_info(std::span<const std::byte> file, std::uint64_t max_pixels);
StoredImage decode_png(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels);

// What wide images (shard/image/wide.hpp) have of a PNG file: one or three channels without alpha,
// of 16 bits or less. A palette is three.
struct PngKind {
  bool sixteen = false;
  bool palette = false;
  std::uint32_t channels = 3;
};
PngKind read_png_kind(std::span<const std::byte> file, std::uint64_t max_pixels);
// color: not of palettes; fewer than 8 bits are scaled to 8.
// as_stored: the numbers that the file has, of a palette its indices.
enum class PngValues : std::uint8_t { color, as_stored };
WideImage decode_wide_png(std::span<const std::byte> file, const DecodeOptions& options,
                          PngValues values = PngValues::color);

// "libspng 0.7.3"
std::string png_version();

}  // namespace shard::image
