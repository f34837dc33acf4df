#include "shard/image/file_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bytes.hpp"
#include "base/text/words.hpp"
#include "image/codecs/image_formats.hpp"
#include "image/metadata/media_brand.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {
namespace {

using Class = FileKind::Class;
using namespace std::string_view_literals;

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  FileKind kind;
};

// In this order: what is more special comes first.
constexpr std::array kMagics{
    Magic{8, "CR\2\0"sv, {Class::image, "a Canon raw image"}},
    Magic{0, "IIRO"sv, {Class::image, "an Olympus raw image"}},
    Magic{0, "IIU\0"sv, {Class::image, "a Panasonic raw image"}},
    Magic{0, "FUJIFILMCCD-RAW"sv, {Class::image, "a Fujifilm raw image"}},
    Magic{0, "\0\0\0\x0CjP  \r\n\x87\n"sv, {Class::image, "a JPEG 2000 image"}},
    Magic{0, "\xFF\x4F\xFF\x51"sv, {Class::image, "a JPEG 2000 image"}},
    Magic{0, "II\xBC\x01"sv, {Class::image, "a JPEG XR image"}},
    Magic{0, "8BPS"sv, {Class::image, "a Photoshop image"}},
    Magic{0, "gimp xcf"sv, {Class::image, "a GIMP image"}},
    Magic{0, "v/1\x01"sv, {Class::image, "an OpenEXR image"}},
    Magic{0, "#?RADIANCE"sv, {Class::image, "a Radiance HDR image"}},
    Magic{0, "qoif"sv, {Class::image, "a QOI image"}},
    Magic{0, "DDS "sv, {Class::image, "a DDS texture"}},
    Magic{0, "farbfeld"sv, {Class::image, "a farbfeld image"}},
    Magic{0, "\0\0\1\0"sv, {Class::image, "an icon (ICO)"}},
    Magic{0, "\0\0\2\0"sv, {Class::image, "a cursor (CUR)"}},
    Magic{128, "DICM"sv, {Class::image, "a DICOM image"}},
    Magic{0, "SIMPLE  ="sv, {Class::image, "a FITS image"}},
    Magic{0, "%PDF-"sv, {Class::other, "a PDF document"}},
    Magic{0, "%!PS"sv, {Class::other, "a PostScript document"}},
    Magic{0, "PK\3\4"sv, {Class::other, "a ZIP archive"}},
    Magic{0, "PK\5\6"sv, {Class::other, "a ZIP archive"}},
    Magic{0, "\x1F\x8B"sv, {Class::other, "a gzip archive"}},
    Magic{0, "BZh"sv, {Class::other, "a bzip2 archive"}},
    Magic{0, "\xFD\x37zXZ\0"sv, {Class::other, "an xz archive"}},
    Magic{0, "\x28\xB5\x2F\xFD"sv, {Class::other, "a zstd archive"}},
    Magic{0, "7z\xBC\xAF\x27\x1C"sv, {Class::other, "a 7-Zip archive"}},
    Magic{0, "Rar!\x1A\x07"sv, {Class::other, "a RAR archive"}},
    Magic{257, "ustar"sv, {Class::other, "a tar archive"}},
    Magic{0, "\x93NUMPY"sv, {Class::other, "a NumPy array"}},
    Magic{0, "\x89HDF\r\n\x1A\n"sv, {Class::other, "an HDF5 file"}},
    Magic{0, "PAR1"sv, {Class::other, "a Parquet file"}},
    Magic{0, "SQLite format 3\0"sv, {Class::other, "an SQLite database"}},
    Magic{0, "\x1A\x45\xDF\xA3"sv, {Class::other, "a Matroska or WebM video"}},
    Magic{0, "OggS"sv, {Class::other, "an Ogg file"}},
    Magic{0, "ID3"sv, {Class::other, "an MP3 file"}},
    Magic{0, "fLaC"sv, {Class::other, "a FLAC file"}},
    Magic{0, "FLV\x01"sv, {Class::other, "a Flash video"}},
    Magic{0, "\0\0\1\xBA"sv, {Class::other, "an MPEG video"}},
    Magic{0, "\0\0\1\xB3"sv, {Class::other, "an MPEG video"}},
    Magic{0,
          "\x7F"
          "ELF"sv,
          {Class::other, "a program"}},
    Magic{0, "\0\0\0\1Bud1"sv, {Class::other, "a folder's settings (.DS_Store)"}},
    Magic{0, "\0\5\x16\7"sv, {Class::other, "AppleDouble data (a '._' file)"}},
    Magic{0, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv, {Class::other, "an OLE document (Thumbs.db, old Office)"}},
    Magic{0,
          "version https://git-lfs"sv,
          {Class::other, "a Git LFS pointer instead of the file (run 'git lfs pull')"}},
};

// Of images in formats that are not decoded: JPEG 2000, QOI, SVG.
constexpr std::string_view kOtherExtensions = "jp2 j2k jpx jpf jpc qoi svg";

bool matches(std::string_view text, std::size_t offset, std::string_view magic) noexcept {
  return text.size() >= offset && text.substr(offset).starts_with(magic);
}

FileKind kind_of_media(MediaBrand brand) noexcept {
  switch (brand) {
    case MediaBrand::avif:
      return {Class::image, "an AVIF image"};
    case MediaBrand::heic:
      return {Class::image, "a HEIC image"};
    case MediaBrand::heif:
      return {Class::image, "a HEIF image"};
    case MediaBrand::canon:
      return {Class::image, "a Canon raw image"};
    case MediaBrand::none:
    case MediaBrand::other:
      break;
  }
  return {Class::other, "an MP4 or QuickTime video"};
}

bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool is_portable_map(std::string_view text) noexcept {
  if (text.size() < 3 || text[0] != 'P') return false;
  if ((text[1] == 'f' || text[1] == 'F') && text[2] == '\n') return true;
  return text[1] >= '1' && text[1] <= '7' && (is_space(text[2]) || text[2] == '#');
}

bool contains_lower(std::string_view text, std::string_view word) noexcept {
  return std::search(text.begin(), text.end(), word.begin(), word.end(),
                     [](char a, char b) { return ascii_lower(a) == b; }) != text.end();
}

// Whether these are bytes of UTF-8 text; a character that is cut off at the end does not matter.
bool is_text(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 ? c != '\t' && c != '\n' && c != '\r' && c != '\f' : c == 0x7F) return false;
    const std::size_t more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE0 && c < 0xF0 ? 2 : 3;
    if (c >= 0x80 && (c < 0xC2 || c > 0xF4)) return false;
    for (std::size_t k = 1; k <= more && i + k < text.size(); ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    i += more + 1;
  }
  return true;
}

FileKind kind_of_text(std::string_view text) noexcept {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string_view begin = text;
  while (!begin.empty() && is_space(begin.front())) begin.remove_prefix(1);
  if (begin.starts_with('<')) {
    if (contains_lower(begin, "<svg")) return {Class::image, "an SVG drawing"};
    if (contains_lower(begin.substr(0, 512), "<html") ||
        contains_lower(begin.substr(0, 64), "<!doctype html"))
      return {Class::other, "an HTML page"};
    if (begin.starts_with("<?xml")) return {Class::other, "an XML file"};
  }
  return {Class::other, "a text file"};
}

FileKind kind_of_riff(std::string_view text) noexcept {
  const std::string_view form = text.substr(8, 4);
  if (form == "AVI ") return {Class::other, "an AVI video"};
  if (form == "WAVE") return {Class::other, "a WAV file"};
  return {};
}

}  // namespace

bool is_image_extension(std::string_view extension) noexcept {
  // The one that was found last: most files of a folder have the same.
  thread_local std::string_view last;
  if (!extension.empty() && extension == last) return true;
  const auto is_among = [&](std::string_view words) {
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t end = std::min(words.find(' ', at), words.size());
      const std::string_view word = words.substr(at, end - at);
      if (word == extension) {
        last = word;
        return true;
      }
      at = end + 1;
    }
    return false;
  };
  return is_among(kOtherExtensions) ||
         std::any_of(image_formats().begin(), image_formats().end(),
                     [&](const ImageFormat& each) { return is_among(each.extensions); });
}

FileKind recognize_file(std::span<const std::byte> first_bytes) noexcept {
  if (const ImageFormat* const found = find_format(detect_format(first_bytes))) {
    // What this build cannot decode is an image all the same.
    const Class group = found->decode != nullptr ? Class::decodable : Class::image;
    const bool heif = media_brand(as_text(first_bytes)) == MediaBrand::heif;
    return {group, heif ? "a HEIF image" : found->kind};
  }
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()),
                              std::min(first_bytes.size(), kFileKindBytes));
  if (text.empty()) return {};
  for (const Magic& magic : kMagics)
    if (matches(text, magic.offset, magic.bytes)) return magic.kind;
  const MediaBrand brand = media_brand(text);
  if (brand != MediaBrand::none) return kind_of_media(brand);
  if (matches(text, 4, "moov") || matches(text, 4, "mdat")) return {Class::other, "a QuickTime video"};
  if (text.starts_with("RIFF") && text.size() >= 12) return kind_of_riff(text);
  if (is_portable_map(text)) return {Class::image, "a Netpbm image"};
  if (is_text(text)) return kind_of_text(text);
  return {};
}

std::string why_not_decodable(std::span<const std::byte> first_bytes) {
  if (first_bytes.empty()) return "the file is empty";
  const FileKind kind = recognize_file(first_bytes);
  const ImageFormat* const format = find_format(detect_format(first_bytes));
  if (format != nullptr && format->decode == nullptr)
    return fmt::format(
        "is {}, and this build reads none: build with {} (Debian: {}), or convert it to PNG or JPEG first",
        kind.name, format->library, format->package);
  switch (kind.group) {
    case Class::image:
      return fmt::format("is {}; convert it to PNG or JPEG first", kind.name);
    case Class::other:
      return fmt::format("is {}, not an image", kind.name);
    case Class::decodable:
    case Class::unknown:
      break;
  }
  std::string hex;
  for (const std::byte b : first_bytes.first(std::min<std::size_t>(first_bytes.size(), 8)))
    hex += fmt::format("{}{:02x}", hex.empty() ? "" : " ", std::to_integer<unsigned>(b));
  return fmt::format("not one of {}: the file starts with {}", decodable_formats(), hex);
}

}  // namespace shard::image
