// How an image must be turned: by its EXIF data, or by XMP if EXIF has no orientation. The rules are those of
// Pillow's Image.getexif (version 11; since 11.0 for XMP in JPEG and WebP).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace shard::image {

// The value of `tiff:Orientation` in an XMP packet, 0 to 9, from an attribute (tiff:Orientation="6") or an
// element (<tiff:Orientation>6<). The first one counts. Nothing if there is none.
std::optional<int> xmp_orientation(std::span<const std::byte> xmp) noexcept;

// 1 to 8. A tag in EXIF data counts, whatever its value. Without it the value in XMP counts. Else 1.
int choose_orientation(std::span<const std::byte> exif, std::span<const std::byte> xmp) noexcept;

// The same of a JPEG file, by its segments up to the first scan; damage in them is for whoever decodes.
std::uint32_t jpeg_orientation(std::span<const std::byte> file) noexcept;

// The bytes of a "Raw profile type exif", as which ImageMagick writes EXIF into PNG text: hexadecimal digits
// from the fourth line on. Empty if they are not hexadecimal digits.
std::vector<std::byte> decode_raw_profile(std::string_view text);

}  // namespace shard::image
