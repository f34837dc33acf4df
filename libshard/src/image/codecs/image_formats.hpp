// The table of image formats: everything that lists them is made from it. A new format is a file beside this
// one and a row in image_formats.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "image/codecs/jpeg.hpp"
#include "image/pixels/pixel_buffer.hpp"
#include "image/pixels/stored_image.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// What decoders keep from one file to the next. One per thread.
struct DecodeState {
  JpegReader jpeg;
  PixelBuffer pixels;  // of the decoded image
};

struct ImageFormat {
  Format format;
  const char* name;                                           // "JPEG"
  const char* kind;                                           // with its article: "a JPEG image"
  const char* extensions;                                     // of file names, in lower case: "jpg jpeg"
  bool (*matches)(std::span<const std::byte> file) noexcept;  // by the first bytes
  const char* library;
  const char* package;  // of Debian
  bool has_pages;
  // Null: this build lacks the library. Errors: corrupt, unsupported, resource, cancelled.
  ImageInfo (*read_info)(std::span<const std::byte> file, std::uint64_t max_pixels, std::uint32_t page);
  StoredImage (*decode)(std::span<const std::byte> file, const DecodeOptions& options, DecodeState& state);
  std::string (*version)();  // null: said by another format of the same library
};

// In the order in which messages name them. No file matches two of them.
std::span<const ImageFormat> image_formats() noexcept;
// Null for Format::unknown.
const ImageFormat* find_format(Format format) noexcept;

// Before a decoder starts that cannot be interrupted. Error: cancelled.
void check_not_cancelled(const DecodeOptions& options);

}  // namespace shard::image
