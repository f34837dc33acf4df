// Bytes of an image file -> RGB, 8 bits a channel, upright.
//
// JPEG (libjpeg-turbo, ISLOW, fancy upsampling), PNG (libspng) and WebP (libwebp), told apart by content. The
// result equals Pillow's `ImageOps.exif_transpose(Image.open(f)).convert("RGB")`: alpha is dropped, gray is
// replicated, CMYK and YCCK are converted as Pillow does, 16-bit PNG keeps the high byte, the first frame of
// an animation is taken.
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
#include "shard/image/warnings.hpp"

namespace shard::image {

enum class Format : std::uint8_t { unknown, jpeg, png, webp };
std::string_view to_string(Format format) noexcept;
Format detect_format(std::span<const std::byte> file) noexcept;

struct ImageInfo {
  Format format = Format::unknown;
  std::uint32_t width = 0;   // columns, as stored (before orientation)
  std::uint32_t height = 0;  // rows, as stored
  int orientation = 1;       // EXIF, 1 to 8; 5 to 8 swap the axes
  std::uint32_t upright_width() const noexcept { return orientation >= 5 ? height : width; }
  std::uint32_t upright_height() const noexcept { return orientation >= 5 ? width : height; }
};

// More pixels than DecodeOptions::max_pixels (code resource), so that a program can say how its bound is
// raised.
class TooManyPixels : public Error {
 public:
  using Error::Error;
};

// Reads the header alone. Errors: corrupt, unsupported (unknown format: the first bytes are named), resource
// (TooManyPixels).
ImageInfo read_info(std::span<const std::byte> file, std::uint64_t max_pixels);

// Rows of `stride_bytes`, each width x 3 bytes (red, green, blue). A view; whoever returned it owns the
// bytes.
struct RgbView {
  const std::uint8_t* data = nullptr;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::size_t stride_bytes = 0;
};

struct DecodeOptions {
  std::uint64_t max_pixels =
      178'956'970;  // Pillow's bound; refused from the header, before anything is allocated
  // JPEG only: the scaled DCT may be used down to the smallest size whose short side is at least this (0:
  // full size).
  std::uint32_t fast_min_short_side = 0;
  OnWarning on_warning = OnWarning::harmless;  // which warnings of the JPEG decoder let an image pass
  const std::atomic<bool>* cancel = nullptr;   // polled between rows; throws cancelled
};

// "libjpeg-turbo 2.1.5; libspng 0.7.3; libwebp 1.2.4": recorded, since it shapes the bytes.
std::string decoder_versions();

// Holds buffers and codec state for reuse. One per thread.
class Decoder {
 public:
  Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;
  ~Decoder();

  // The whole image, upright. The view is valid until the next call. Errors: corrupt (also: a warning of the
  // JPEG decoder that options.on_warning does not let pass), unsupported, resource, cancelled. No input can
  // crash it or make it allocate more than the header's pixels justify. No file changes how a later one is
  // decoded.
  RgbView decode(std::span<const std::byte> file, const DecodeOptions& options);
  // What the last decode() let pass.
  const WarningSet& warnings() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// quality 1 to 100; subsampling 444, 422, 420; writes a baseline JPEG (4:2:0 as cameras do when 420).
std::vector<std::byte> encode_jpeg(const RgbView& image, int quality, int subsampling = 420);
std::vector<std::byte> encode_png(const RgbView& image);

}  // namespace shard::image
