// How an image is to be turned, from what the file says about it: EXIF, and XMP where EXIF has no
// orientation. The rules are those of Pillow's Image.getexif (version 11; since 11.0 for XMP in JPEG and
// WebP).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace shard::image {

// What `tiff:Orientation` says in an XMP packet, 0 to 9; nothing where it says nothing. As an attribute
// (tiff:Orientation="6") or an element (<tiff:Orientation>6<); the first one counts.
std::optional<int> xmp_orientation(std::span<const std::byte> xmp) noexcept;

// 1 to 8. The tag in EXIF data wins, whatever its value; without the tag XMP is asked; 1 for anything else.
int choose_orientation(std::span<const std::byte> exif, std::span<const std::byte> xmp) noexcept;

// The bytes of a "Raw profile type exif" (ImageMagick writes EXIF into PNG text so): hexadecimal digits from
// the fourth line on. Empty where they are none.
std::vector<std::byte> decode_raw_profile(std::string_view text);

}  // namespace shard::image
