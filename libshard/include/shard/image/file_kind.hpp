// What kind of file some bytes are, told by their content and never by a name. Used to name a file that
// cannot be decoded ("is a HEIC image"), and to tell images from files that are none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shard::image {

// The first bytes of a file that recognize_file() looks at; more of them change nothing.
inline constexpr std::size_t kFileKindBytes = 4096;

struct FileKind {
  enum class Class : std::uint8_t {
    unknown,    // nothing that we know; may be an image whose first bytes are damaged
    decodable,  // JPEG, PNG or WebP: this library reads it
    image,      // a picture in another format: HEIC, TIFF, SVG, camera raw, ...
    other,      // known, and no picture: text, PDF, video, archive, ...
  };
  Class group = Class::unknown;
  // With its article: "a HEIC image", "an HTML page"; "an unknown kind of file". Lives as long as the
  // program.
  std::string_view name = "an unknown kind of file";
};

// Never reads outside of `first_bytes`, which may be empty (then unknown) or the whole file. Thread-safe.
FileKind recognize_file(std::span<const std::byte> first_bytes) noexcept;

// Why a file that is not decodable is refused, and what to do: "is a HEIC image; convert it to PNG or JPEG
// first", "is a PDF document, not an image", "neither JPEG, PNG nor WebP: the file begins with 01 02 03".
std::string why_not_decodable(std::span<const std::byte> first_bytes);

}  // namespace shard::image
