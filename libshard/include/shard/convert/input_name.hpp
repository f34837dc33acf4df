// Which files of a folder are images: by their names and, if a name does not decide, by their first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shard/convert/listing.hpp"
#include "shard/error.hpp"

namespace shard::convert {

// Why a file with this name (the last part of a path) is skipped: hidden or litter. Nothing: it is not
// skipped.
std::optional<SkipReason> skip_by_name(std::string_view name);
// The same for every part of a path between slashes: the reason of the first part that is skipped.
std::optional<SkipReason> skip_by_path(std::string_view path);

// What the members of one sample have in common in a WebDataset:
// the path up to the first dot of its last part.
std::string sample_name(std::string_view path);

// "ant/1.b.jpg" -> "ant/1.b": files that belong to one image have this in common.
std::string_view without_extension(std::string_view path);

// True for the extensions of JPEG, PNG, WebP, TIFF and GIF, and of image formats that are not decoded (BMP,
// HEIC, ...), in upper or lower case.
bool has_image_name(std::string_view name);

// True for formats that the decoder reads, and for image formats that it recognises and refuses. Looks at no
// more than the first image::kFileKindBytes bytes.
bool has_image_content(std::span<const std::byte> begin) noexcept;

// Opens `path` (relative to the folder `dir_fd`, or AT_FDCWD) and looks at its first bytes. A file that
// cannot be opened or read counts as an image, so that it becomes a reject with its reason. Anything but a
// regular file is not an image. `known_regular`: the caller knows that it is one. Throws resource if the
// process has too many open files.
bool is_image_file(int dir_fd, const char* path, bool known_regular = false);

}  // namespace shard::convert
