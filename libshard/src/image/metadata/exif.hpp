// The orientation tag (0x0112) of EXIF data: a TIFF structure, either byte order, perhaps behind "Exif\0\0".
// TIFF 6.0, section 2; EXIF 2.32, 4.6.2. Reads the first directory only, as Pillow does.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace shard::image {

// 1 to 8; 1 for any other value. Nothing if the tag is absent or damaged. Never reads outside of `data`.
std::optional<int> exif_orientation_tag(std::span<const std::byte> data) noexcept;

// 1 to 8; 1 for anything absent, damaged or out of range. Never reads outside of `data`.
int exif_orientation(std::span<const std::byte> data) noexcept;

}  // namespace shard::image
