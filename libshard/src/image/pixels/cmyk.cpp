#include "image/pixels/cmyk.hpp"

namespace shard::image {
namespace {
// a * b / 255, rounded to nearest, for bytes.
constexpr std::uint32_t multiply_bytes(std::uint32_t a, std::uint32_t b) noexcept {
  const std::uint32_t t = a * b + 128;
  return ((t >> 8) + t) >> 8;
}
}  // namespace

void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb, std::size_t pixels) noexcept {
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint32_t light = cmyk[4 * i + 3];  // 255 - black
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint32_t ink = 255u - cmyk[4 * i + c];
      rgb[3 * i + c] = static_cast<std::uint8_t>(light - multiply_bytes(ink, light));
    }
  }
}

}  // namespace shard::image
