#include <algorithm>
#include <array>

#include "shard/image/decode.hpp"

namespace shard::image {
namespace {
bool matches(std::span<const std::byte> file, std::size_t offset, std::string_view magic) noexcept {
  return file.size() >= offset + magic.size() &&
         std::equal(magic.begin(), magic.end(), file.begin() + static_cast<std::ptrdiff_t>(offset),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

// Classic and BigTIFF. Camera raw files that begin as TIFF does have marks of their own.
bool is_tiff(std::span<const std::byte> file) noexcept {
  using namespace std::string_view_literals;
  if (matches(file, 8, "CR\2\0"sv)) return false;
  return matches(file, 0, "II*\0"sv) || matches(file, 0, "MM\0*"sv) || matches(file, 0, "II+\0"sv) ||
         matches(file, 0, "MM\0+"sv);
}
}  // namespace

std::string_view to_string(Format format) noexcept {
  switch (format) {
    case Format::jpeg:
      return "JPEG";
    case Format::png:
      return "PNG";
    case Format::webp:
      return "WebP";
    case Format::tiff:
      return "TIFF";
    case Format::gif:
      return "GIF";
    case Format::unknown:
      break;
  }
  return "unknown";
}

Format detect_format(std::span<const std::byte> file) noexcept {
  if (matches(file, 0, "\xFF\xD8\xFF")) return Format::jpeg;
  if (matches(file, 0, "\x89PNG\r\n\x1A\n")) return Format::png;
  if (matches(file, 0, "RIFF") && matches(file, 8, "WEBP")) return Format::webp;
  if (matches(file, 0, "GIF87a") || matches(file, 0, "GIF89a")) return Format::gif;
  if (is_tiff(file)) return Format::tiff;
  return Format::unknown;
}

}  // namespace shard::image
