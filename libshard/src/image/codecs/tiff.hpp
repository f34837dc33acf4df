// TIFF files through libtiff, classic and BigTIFF: a page, in strips or tiles, planes together or apart.
//
//   gray, black and white    1, 2, 4, 8 or 16 bits, 0 white or black, with or without alpha
//   palette                  1, 2, 4 or 8 bits
//   RGB                      8 or 16 bits, with or without a fourth band: associated alpha is divided out,
//                            any other dropped
//   CMYK                     8 or 16 bits
//   YCbCr                    JPEG compression only
//
// 16 bits keep the high byte. Compression: none, PackBits, CCITT, LZW, Deflate, JPEG, Zstandard.
// Everything else is unsupported.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/pixels/stored_image.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// Errors: corrupt, unsupported, not_found (no such page), resource (TooManyPixels;
// more memory than the pixels justify).
ImageInfo read_tiff_info(std::span<const std::byte> file, std::uint64_t max_pixels, std::uint32_t page = 0);

// The page that `options` name. Errors: likewise; cancelled.
StoredImage decode_tiff(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels);

}  // namespace shard::image
