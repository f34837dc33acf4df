// PNG files through libspng: every colour type and bit depth, interlaced or not. Alpha and tRNS are dropped;
// 16 bits keep the high byte.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/stored_image.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// Errors: corrupt (also a wrong CRC), unsupported, resource (max_pixels), cancelled.
ImageInfo read_png_info(std::span<const std::byte> file, std::uint64_t max_pixels);

StoredImage decode_png(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels);

// "libspng 0.7.3"
std::string png_version();

}  // namespace shard::image
