// Decoder: bytes of an image file -> upright RGB, 8 bits per channel.
//
// Decodes JPEG (libjpeg-turbo, ISLOW, fancy upsampling), PNG (libspng), WebP (libwebp), TIFF (libtiff) and
// GIF (giflib), and where the build has their libraries BMP and PNM (TurboJPEG), AVIF (libavif), HEIC
// (libheif) and JPEG XL (libjxl), recognised by content. The result equals Pillow's
// `ImageOps.exif_transpose(Image.open(f)).convert("RGB")`: alpha is dropped, gray is replicated, CMYK and
// YCCK are converted as in Pillow, 16 bits keep the high byte, and of an animation the first picture is
// taken, of a TIFF file the page that is asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/error.hpp"
#include "shard/image/memory_budget.hpp"
#include "shard/image/warnings.hpp"

namespace shard::image {

enum class Format : std::uint8_t { unknown, jpeg, png, webp, tiff, gif, bmp, pnm, avif, heic, jxl };
std::string_view to_string(Format format) noexcept;
Format detect_format(std::span<const std::byte> file) noexcept;

struct ImageInfo {
  Format format = Format::unknown;
  // Columns and rows as stored, before orientation.
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  // EXIF orientation, 1 to 8; 5 to 8 swap the axes.
  int orientation = 1;
  std::uint32_t upright_width() const noexcept { return orientation >= 5 ? height : width; }
  std::uint32_t upright_height() const noexcept { return orientation >= 5 ? width : height; }
};

// An image has more pixels than DecodeOptions::max_pixels (code resource). It has a type of its own so that a
// program can say how to raise its bound.
class TooManyPixels : public Error {
 public:
  using Error::Error;
};

// Reads the header only, of a TIFF file that of a page. Errors: corrupt, unsupported (unknown format;
// the message has the first bytes; a page other than 0 of another format), not_found (no such page),
// resource (TooManyPixels).
ImageInfo read_info(std::span<const std::byte> file, std::uint64_t max_pixels, std::uint32_t page = 0);

// uint8 [row, column, channel] with rows of `stride_bytes`, channels red, green, blue. A view: whoever
// returned it owns the bytes.
struct RgbView {
  const std::uint8_t* data = nullptr;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::size_t stride_bytes = 0;
};

struct DecodeOptions {
  // Larger images are refused from their header, before anything is allocated. Default: Pillow's bound.
  std::uint64_t max_pixels = 178'956'970;
  // JPEG only: the scaled DCT may be used down to the smallest size whose short side is at least this. 0:
  // full size.
  std::uint32_t fast_min_short_side = 0;
  // Which warnings of the JPEG decoder are accepted.
  OnWarning on_warning = OnWarning::harmless;
  // Of a TIFF file, from 0 on. Other formats have page 0 only; another one is unsupported.
  std::uint32_t page = 0;
  // PNG and TIFF files of 16 bits have numbers of so many bits, 9 to 16, of which the highest 8 are kept; an
  // image with a larger number is unsupported. 0: 16. Not for decode_wide(), which keeps the numbers.
  unsigned depth = 0;
  // Checked between rows; if it is true, cancelled is thrown. Null: never.
  const std::atomic<bool>* cancel = nullptr;
  // What the decoders of several threads may take together. An image that needs more than all of it is
  // refused (resource); others wait for their turn. Null: not bounded.
  MemoryBudget* memory = nullptr;
};

// "libjpeg-turbo 2.1.5; libspng 0.7.3; libwebp 1.2.4; libtiff 4.5.0; giflib 5.2.1", and what else the build
// has. Data sets record it, because it affects the bytes.
std::string decoder_versions();
// "JPEG, PNG, WebP, TIFF, GIF, AVIF": what this build reads.
std::string decodable_formats();

// Keeps buffers and codec state for reuse. Use one per thread.
class Decoder {
 public:
  Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;
  ~Decoder();

  // The whole image, upright. The view is valid until the next call. Errors: corrupt (also for a warning of
  // the JPEG decoder that options.on_warning does not accept), unsupported, not_found (no such page),
  // resource, cancelled. No input can crash it or make it allocate more than the number of pixels in the
  // header justifies. No file affects how a later one is decoded.
  RgbView decode(std::span<const std::byte> file, const DecodeOptions& options);
  // The warnings that the last decode() accepted.
  const WarningSet& warnings() const noexcept;
  // Ends the last view. Gives back large buffers, and what they took of options.memory.
  void release() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Writes a baseline JPEG. quality: 1 to 100; subsampling: 444, 422 or 420.
std::vector<std::byte> encode_jpeg(const RgbView& image, int quality, int subsampling = 420);
std::vector<std::byte> encode_png(const RgbView& image);

}  // namespace shard::image
