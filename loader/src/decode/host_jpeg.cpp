#include "decode/host_jpeg.hpp"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "image/pixels/orient.hpp"
#include "image/pixels/stored_image.hpp"
#include "shard/error.hpp"
#include "shard/image/file_kind.hpp"

namespace shard::jpeg {
namespace {

void check_kind(std::span<const std::byte> file) {
  const image::Format format = image::detect_format(file);
  if (format == image::Format::jpeg) return;
  if (file.empty()) throw Error(ErrorCode::corrupt, "no bytes");
  throw Error(ErrorCode::unsupported, format == image::Format::unknown
                                          ? image::why_not_decodable(file)
                                          : std::string(image::to_string(format)) + ", not JPEG");
}

}  // namespace

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
