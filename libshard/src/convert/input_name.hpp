// Which files of a folder are images at all: by their names, and by their first bytes where a name says
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "shard/convert/listing.hpp"

namespace shard::convert {

// By the name alone (the last part of a path): hidden, litter, or nothing.
std::optional<SkipReason> skip_by_name(std::string_view name);
// The same for each part of a path between slashes: the first that is to be skipped decides.
std::optional<SkipReason> skip_by_path(std::string_view path);

// True for the extensions of JPEG, PNG, WebP and of formats that are not decoded (GIF, HEIC, ...), in any
// case.
bool has_image_name(std::string_view name);

// True for what the decoder reads and for images of formats that it names when it refuses them. Looks at
// image::kFileKindBytes at most.
bool has_image_content(std::span<const std::byte> begin) noexcept;

// Opens `path` (relative to the folder `dir_fd`, or AT_FDCWD) and looks at the beginning. A file that cannot
// be opened or read counts as an image: its reason stands among the rejects then. Not a regular file: no
// image. Throws resource when no file can be opened any more.
// `known_regular`: the folder has said that it is a regular file.
bool is_image_file(int dir_fd, const char* path, bool known_regular = false);

}  // namespace shard::convert
