// The formats whose library may be missing from a build: BMP and PNM (TurboJPEG), AVIF (libavif), HEIC
// (libheif), JPEG XL (libjxl). CMake finds the libraries: SHARD_TURBOJPEG, SHARD_AVIF, SHARD_HEIF, SHARD_JXL.
// All other files see them as one codec.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "image/pixels/stored_image.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// Whether this build reads the format; true for all that are not optional.
bool is_built_in(Format format) noexcept;

// Of an optional format that is built in: else unsupported.
// Errors: corrupt, unsupported, resource, cancelled.
ImageInfo read_optional_info(Format format, std::span<const std::byte> file, std::uint64_t max_pixels);
StoredImage decode_optional(Format format, std::span<const std::byte> file, const DecodeOptions& options,
                            PixelBuffer& pixels);

// "; TurboJPEG 2.1.5; libavif 0.11.1", or "" without any of them.
std::string optional_versions();
// ", BMP, PNM, AVIF": names of what is built in, behind those that always are.
std::string optional_names();
// "libavif (Debian: libavif-dev)", what a build of an optional format needs.
std::string optional_package(Format format);

// Before a decoder starts that cannot be interrupted. Error: cancelled.
void check_not_cancelled(const DecodeOptions& options);

}  // namespace shard::image
