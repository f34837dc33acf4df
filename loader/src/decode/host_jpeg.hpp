// JPEG files on the calling thread: what their headers say, and their pixels by libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "image/codecs/jpeg.hpp"
#include "image/pixels/pixel_buffer.hpp"
#include "shard/image/decode.hpp"

namespace shard::jpeg {

inline constexpr std::uint64_t kMostPixels = image::DecodeOptions{}.max_pixels;

// One per thread.
class HostJpeg {
 public:
  // Columns and rows of the image that decode() returns. Errors: corrupt, unsupported (also no JPEG),
  // resource (too many pixels).
  image::ImageInfo read_info(std::span<const std::byte> file);
  // Valid until the next call. Errors: the same, and corrupt for what libjpeg-turbo warns of, unless the
  // pixels are complete.
  image::RgbView decode(std::span<const std::byte> file, bool upright);

 private:
  image::JpegReader reader_;
  image::PixelBuffer pixels_;
  image::PixelBuffer upright_;
};

}  // namespace shard::jpeg
