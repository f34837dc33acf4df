#include <algorithm>
#include <array>

#include "base/bytes.hpp"
#include "image/metadata/media_brand.hpp"
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

bool is_space(std::byte b) noexcept {
  const auto c = std::to_integer<unsigned char>(b);
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// P1 to P6, then the width, perhaps behind comments.
bool is_pnm(std::span<const std::byte> file) noexcept {
  if (file.size() < 4 || !matches(file, 0, "P") || file[1] < std::byte{'1'} || file[1] > std::byte{'6'})
    return false;
  if (file[2] == std::byte{'#'}) return true;
  std::size_t at = 2;
  while (at < file.size() && is_space(file[at])) ++at;
  return at > 2 && at < file.size() &&
         (file[at] == std::byte{'#'} || (file[at] >= std::byte{'0'} && file[at] <= std::byte{'9'}));
}

// "BM", and the size of a known header at 14.
bool is_bmp(std::span<const std::byte> file) noexcept {
  using namespace std::string_view_literals;
  if (!matches(file, 0, "BM") || !matches(file, 15, "\0\0\0"sv)) return false;
  const auto header = std::to_integer<unsigned>(file[14]);
  return header == 12 || (header >= 16 && header <= 124);
}

bool is_jxl(std::span<const std::byte> file) noexcept {
  using namespace std::string_view_literals;
  return matches(file, 0, "\xFF\x0A"sv) || matches(file, 0, "\0\0\0\x0CJXL \r\n\x87\n"sv);
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
    case Format::bmp:
      return "BMP";
    case Format::pnm:
      return "PNM";
    case Format::avif:
      return "AVIF";
    case Format::heic:
      return "HEIC";
    case Format::jxl:
      return "JPEG XL";
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
  if (is_jxl(file)) return Format::jxl;
  if (is_bmp(file)) return Format::bmp;
  if (is_pnm(file)) return Format::pnm;
  switch (media_brand(as_text(file))) {
    case MediaBrand::avif:
      return Format::avif;
    case MediaBrand::heic:
    case MediaBrand::heif:
      return Format::heic;
    case MediaBrand::none:
    case MediaBrand::canon:
    case MediaBrand::other:
      break;
  }
  return Format::unknown;
}

}  // namespace shard::image
