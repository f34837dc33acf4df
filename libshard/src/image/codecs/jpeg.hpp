// One JPEG at a time, decoded in part: a box of the image, delivered in small batches of rows while they are
// hot in cache.
//
//   open() -> start(box) -> read_rows() until it returns no row -> finish()
//
// The rows are equal, bit for bit, to those of a full decode with libjpeg-turbo's defaults (ISLOW, fancy
// upsampling). For rows and columns outside of the box, the inverse DCT and the colour conversion are skipped
// if that does not change the box. Everything is entropy-decoded, so that damage anywhere in the file is
// found, by finish() at the latest. So the rows must not be used before finish() returned. Not thread safe:
// use one reader per thread, for one file after the other. After an error, call open() next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "image/pixels/pixel_buffer.hpp"
#include "image/pixels/stored_image.hpp"
#include "shard/image/decode.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::image {

struct JpegHeader {
  std::uint32_t stored_width = 0;  // as the file says
  std::uint32_t stored_height = 0;
  std::uint32_t width =
      0;  // as decoded: smaller than stored where options.fast_min_short_side allows; not yet turned upright
  std::uint32_t height = 0;
  int orientation = 1;  // EXIF, 1 to 8; applying it is the caller's
};

class JpegReader {
 public:
  JpegReader();
  JpegReader(JpegReader&&) noexcept;
  JpegReader& operator=(JpegReader&&) noexcept;
  ~JpegReader();

  // Parses the header. Borrows `file` and `options.cancel` until finish() or the next open().
  // Errors: corrupt, unsupported (12 bits, lossless, 2 components), resource (max_pixels).
  const JpegHeader& open(std::span<const std::byte> file, const DecodeOptions& options);

  // The memory that decoding takes besides a few rows: for files with several scans, their coefficients.
  std::uint64_t memory_bytes() const noexcept;

  // Starts to decode `box`, in columns and rows of the decoded image (header.width x header.height).
  // Errors: corrupt (progressive files are entropy-decoded here), cancelled, invalid_argument (box outside of
  // the image).
  void start(const Box& box);

  // The next rows of the box, at most `max_rows`, each box.width pixels; height 0 once all were read. Rows
  // lie in a buffer of the reader: the view is valid until the next call. Errors: corrupt, cancelled.
  RgbView read_rows(std::uint32_t max_rows);
  // The same into the caller's rows; returns how many.
  std::uint32_t read_rows(std::uint8_t* out, std::size_t stride_bytes, std::uint32_t max_rows);

  // Checks the rest of the file, after the box. Errors: corrupt, cancelled.
  void finish();

  // Frees the memory of decoding, also after an error. Call open() next.
  void close() noexcept;

  // Of the file that was opened last; complete once finish() has returned.
  const WarningSet& warnings() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Errors: those of JpegReader::open().
ImageInfo read_jpeg_info(std::span<const std::byte> file, std::uint64_t max_pixels);
// The whole image, into `pixels`. Errors: those of JpegReader.
StoredImage decode_jpeg(JpegReader& reader, std::span<const std::byte> file, const DecodeOptions& options,
                        PixelBuffer& pixels);

// "libjpeg-turbo 2.1.5"
std::string jpeg_version();

}  // namespace shard::image
