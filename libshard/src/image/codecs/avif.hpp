// AVIF files through libavif and dav1d: the first image; turned and mirrored as the file says (irot,
// imir; EXIF's orientation does not count, as in Pillow), not cropped (clap); 10 and 12 bits rounded to
// 8; alpha is dropped, and undone where colours are multiplied by it. The bytes depend on the versions of
// libavif, dav1d and libyuv.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/pixels/stored_image.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// Errors: corrupt, unsupported (libavif without dav1d, the decoder whose frames can be bounded), resource,
// cancelled (before it begins).
ImageInfo read_avif_info(std::span<const std::byte> file, std::uint64_t max_pixels);
StoredImage decode_avif(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels);

// "libavif 0.11.1 with dav1d 1.0.0"
std::string avif_version();

}  // namespace shard::image
