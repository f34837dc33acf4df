// Recognises the kind of a file from its content, never from its name. Used to name a file that cannot be
// decoded ("is a HEIC image"), and to distinguish images from other files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shard::image {

// recognize_file() uses only this many first bytes of a file.
inline constexpr std::size_t kFileKindBytes = 4096;

struct FileKind {
  enum class Class : std::uint8_t {
    // Not recognised; may be an image whose first bytes are damaged.
    unknown,
    // This library decodes it (decodable_formats()).
    decodable,
    // A picture in another format, or one whose library this build lacks: SVG, camera raw, ...
    image,
    // Recognised, but not a picture: text, PDF, video, archive, ...
    other,
  };
  Class group = Class::unknown;
  // With its article: "a HEIC image", "an HTML page"; "an unknown kind of file". Points to static memory.
  std::string_view name = "an unknown kind of file";
};

// Whether files with this extension (in lower case, without the dot) are images, decodable or not. What is
// decoded is decided by the content.
bool is_image_extension(std::string_view extension) noexcept;

// `first_bytes` may be empty (then the kind is unknown) or the whole file. Nothing outside of it is read.
// Thread safe.
FileKind recognize_file(std::span<const std::byte> first_bytes) noexcept;

// Why a file that is not decodable is refused, and what to do: "is a Photoshop image; convert it to PNG or
// JPEG first", "is a HEIC image, and this build reads none: build with libheif (Debian: libheif-dev), or
// convert ...", "is a PDF document, not an image", "not one of JPEG, PNG, WebP, TIFF, GIF: the file
// starts with 01 02 03".
std::string why_not_decodable(std::span<const std::byte> first_bytes);

}  // namespace shard::image
