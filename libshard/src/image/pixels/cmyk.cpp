#include "image/pixels/cmyk.hpp"

#include "jpeg/colour.hpp"

namespace shard::image {

void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb, std::size_t pixels) noexcept {
  for (std::size_t i = 0; i < pixels; ++i) jpeg::inverted_cmyk_to_rgb(cmyk + 4 * i, rgb + 3 * i);
}

}  // namespace shard::image
