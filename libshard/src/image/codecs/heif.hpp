// HEIC and other HEIF files through libheif: the primary image; turned, mirrored and cropped by libheif as
// the file says (irot, imir, clap; EXIF's orientation does not count); 10 and 12 bits become 8; alpha is
// dropped. The bytes depend on the versions of libheif and libde265.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/pixels/stored_image.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// Width and height are those of the upright image. Errors: corrupt, unsupported (a coding that libheif lacks
// here), resource (also by the size that the HEVC header has), cancelled (before it begins).
ImageInfo read_heif_info(std::span<const std::byte> file, std::uint64_t max_pixels);
StoredImage decode_heif(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels);

// "libheif 1.15.1"
std::string heif_version();

}  // namespace shard::image
