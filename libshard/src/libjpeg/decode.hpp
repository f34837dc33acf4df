// JPEG files, or parts of them, to pixels by libjpeg-turbo's default decoder: ISLOW, fancy upsampling, not
// merged; gray and RGB as libjpeg delivers them, four components as CMYK turned to RGB (jpeg/cmyk.hpp). For
// files whose header was parsed (jpeg/header.hpp), so that each has the tables that it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "jpeg/region.hpp"

namespace shard::libjpeg {

// Where the pixels go: [row, column, channel] of the upright image, without gaps.
struct PixelsOut {
  std::uint8_t* data = nullptr;
  std::uint32_t width = 0;  // as the file says
  std::uint32_t height = 0;
  std::uint32_t channels = 3;     // 3; or 1 of a file of one component
  std::uint32_t orientation = 1;  // EXIF, 1 to 8 (jpeg/orient.hpp)
};

// Not thread-safe: one per thread, for one file after the other.
class Decoder {
 public:
  Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder();

  // Fills `out`. Returns whether bytes stand between the last MCU and the next marker, which libjpeg skips:
  // an encoder's, or a sign of damage. Errors: corrupt (also another size than that of `out`, and whatever
  // else libjpeg warns of), unsupported, resource.
  bool decode(std::span<const std::byte> file, const PixelsOut& out);
  // Fills a box of the upright image, which is inside it, and leaves the rest of `out`. The data are read as
  // far as that needs, so damage behind it is not found. Errors: those of decode().
  void decode_part(std::span<const std::byte> file, const PixelsOut& out, const jpeg::PixelBox& upright);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shard::libjpeg
