// WebP files through libwebp: lossy and lossless; alpha is dropped without blending; of an animation the
// first frame on its canvas.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/pixels/stored_image.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// Errors: corrupt (also a truncated file), resource (max_pixels), cancelled.
ImageInfo read_webp_info(std::span<const std::byte> file, std::uint64_t max_pixels);

StoredImage decode_webp(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels);

// "libwebp 1.2.4"
std::string webp_version();

}  // namespace shard::image
