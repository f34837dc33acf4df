// GIF files through giflib: the first frame on its canvas, which grows where the frame reaches beyond it. As
// in Pillow, transparency is ignored: a transparent pixel has the colour of its index, and so have the parts
// of the canvas without a frame (index 0 where the frame has no transparent index).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/pixels/stored_image.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// Errors: corrupt, resource (TooManyPixels).
ImageInfo read_gif_info(std::span<const std::byte> file, std::uint64_t max_pixels);

// Errors: likewise; cancelled. What follows the first frame is not looked at.
StoredImage decode_gif(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels);

// "giflib 5.2.1"
std::string gif_version();

}  // namespace shard::image
