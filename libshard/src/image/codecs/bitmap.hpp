// BMP and PNM (PGM and PPM) files through TurboJPEG's tjLoadImage. That function reads files by path, trusts
// their sizes and knows few headers. So the header is read and checked here, and TurboJPEG gets a file in
// memory (memfd) with a plain header and the pixels.
//
// BMP: uncompressed with 8 bits and a palette, 24 or 32 bits; any header from OS/2's to version 5, rows from
// the bottom or the top. PNM: P2, P3, P5 and P6 with values up to 255. Others are refused by name. The pixels
// are Pillow's; 32 bits have no alpha.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/pixels/stored_image.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// Errors: corrupt (also if the file is too short for its size), unsupported (other kinds of pixels),
// resource, cancelled (before it begins).
ImageInfo read_bmp_info(std::span<const std::byte> file, std::uint64_t max_pixels);
ImageInfo read_pnm_info(std::span<const std::byte> file, std::uint64_t max_pixels);
StoredImage decode_bmp(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels);
StoredImage decode_pnm(std::span<const std::byte> file, const DecodeOptions& options, PixelBuffer& pixels);

// "TurboJPEG 2.1.5"
std::string turbojpeg_version();

}  // namespace shard::image
