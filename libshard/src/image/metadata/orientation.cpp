#include "image/metadata/orientation.hpp"

#include "image/metadata/exif.hpp"

namespace shard::image {
namespace {

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<int> xmp_orientation(std::span<const std::byte> xmp) noexcept {
  constexpr std::string_view kName = "tiff:Orientation";
  const std::string_view text(reinterpret_cast<const char*>(xmp.data()), xmp.size());
  for (std::size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at + 1)) {
    std::string_view behind = text.substr(at + kName.size());
    if (behind.starts_with("=\""))
      behind.remove_prefix(2);
    else if (behind.starts_with('>'))
      behind.remove_prefix(1);
    else
      continue;
    if (!behind.empty() && behind.front() >= '0' && behind.front() <= '9') return behind.front() - '0';
  }
  return std::nullopt;
}

int choose_orientation(std::span<const std::byte> exif, std::span<const std::byte> xmp) noexcept {
  if (const auto tag = exif_orientation_tag(exif)) return *tag;
  const int orientation = xmp_orientation(xmp).value_or(1);
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

std::uint32_t jpeg_orientation(std::span<const std::byte> file) noexcept {
  using namespace std::string_view_literals;
  constexpr std::string_view kExif = "Exif\0"sv;
  constexpr std::string_view kXmp = "http://ns.adobe.com/xap/1.0/\0"sv;
  constexpr unsigned kApp1 = 0xE1;
  constexpr unsigned kSos = 0xDA;
  std::span<const std::byte> exif;  // of several the first one counts
  std::span<const std::byte> xmp;   // the last one
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(file[i]); };
  std::size_t at = 2;
  while (at + 4 <= file.size() && byte(at) == 0xFF) {
    const unsigned marker = byte(at + 1);
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    const std::size_t size = byte(at + 2) << 8 | byte(at + 3);
    if (marker == kSos || size < 2 || size > file.size() - at - 2) break;
    const auto data = file.subspan(at + 4, size - 2);
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    if (marker == kApp1 && text.starts_with(kExif) && text.size() >= 6 && exif.empty()) exif = data;
    if (marker == kApp1 && text.starts_with(kXmp)) xmp = data.subspan(kXmp.size());
    at += 2 + size;
  }
  return static_cast<std::uint32_t>(choose_orientation(exif, xmp));
}

std::vector<std::byte> decode_raw_profile(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  std::vector<std::byte> bytes;
  int high = -1;
  for (const char c : text) {
    const int digit = hex_digit(c);
    if (digit < 0) {
      if (high < 0 && (c == ' ' || (c >= '\t' && c <= '\r'))) continue;
      if (c == '\n') continue;
      return {};
    }
    if (high >= 0) bytes.push_back(static_cast<std::byte>(high << 4 | digit));
    high = high >= 0 ? -1 : digit;
  }
  if (high >= 0) return {};
  return bytes;
}

}  // namespace shard::image
