#include "image/codecs/image_formats.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

std::string_view to_string(Format format) noexcept {
  const ImageFormat* const found = find_format(format);
  return found == nullptr ? "unknown" : found->name;
}

Format detect_format(std::span<const std::byte> file) noexcept {
  for (const ImageFormat& each : image_formats())
    if (each.matches(file)) return each.format;
  return Format::unknown;
}

}  // namespace shard::image
