// JPEG XL files through libjxl: the first frame, upright as the file says; 16 bits and floats become 8; alpha
// is dropped, without blending; colours as they are coded, without their ICC profile (lossy files: as libjxl
// turns its own colours into them). The bytes depend on the version of libjxl.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/pixels/stored_image.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// Width and height are those of the upright image. Errors: corrupt, unsupported (CMYK, many further
// channels), resource (also by the size of the first frame), cancelled (before it begins).
ImageInfo read_jxl_info(std::span<const std::byte> file, std::uint64_t max_pixels);
StoredImage decode_jxl(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels);

// "libjxl 0.7.0"
std::string jxl_version();

}  // namespace shard::image
