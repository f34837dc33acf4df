#include "decode/host_jpeg.hpp"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <string_view>

#include "image/metadata/orientation.hpp"
#include "image/pixels/orient.hpp"
#include "image/pixels/stored_image.hpp"
#include "shard/error.hpp"
#include "shard/image/file_kind.hpp"

namespace shard::jpeg {
namespace {

using namespace std::string_view_literals;

void check_kind(std::span<const std::byte> file) {
  const image::Format format = image::detect_format(file);
  if (format == image::Format::jpeg) return;
  if (file.empty()) throw Error(ErrorCode::corrupt, "no bytes");
  throw Error(ErrorCode::unsupported, format == image::Format::unknown
                                          ? image::why_not_decodable(file)
                                          : std::string(image::to_string(format)) + ", not JPEG");
}

}  // namespace

std::uint32_t orientation_of_file(std::span<const std::byte> file) noexcept {
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
  return static_cast<std::uint32_t>(image::choose_orientation(exif, xmp));
}

image::ImageInfo HostJpeg::read_info(std::span<const std::byte> file) {
  check_kind(file);
  image::DecodeOptions any_size;
  any_size.max_pixels = std::numeric_limits<std::uint64_t>::max();
  const image::JpegHeader& header = reader_.open(file, any_size);
  const image::ImageInfo info{image::Format::jpeg, header.stored_width, header.stored_height,
                              header.orientation};
  reader_.close();
  if (std::uint64_t{info.width} * info.height > kMostPixels)
    throw Error(ErrorCode::resource,
                fmt::format("{} x {} pixels; at most {} are decoded here. A conversion takes larger ones: "
                            "raise its max_pixels",
                            info.width, info.height, kMostPixels));
  return info;
}

image::RgbView HostJpeg::decode(std::span<const std::byte> file, bool upright) {
  check_kind(file);
  const image::StoredImage stored = image::decode_jpeg(reader_, file, {}, pixels_);
  return upright ? image::turn_upright(stored.pixels, stored.orientation, upright_) : stored.pixels;
}

}  // namespace shard::jpeg
