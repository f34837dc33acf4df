#include "image/pixels/orient.hpp"

#include "jpeg/orient.hpp"

namespace shard::image {

RgbView turn_upright(const RgbView& image, int orientation, PixelBuffer& buffer) {
  if (orientation < 2 || orientation > 8 || image.width == 0 || image.height == 0) return image;
  const bool swapped = orientation >= 5;
  const std::uint32_t width = swapped ? image.height : image.width;
  const std::uint32_t height = swapped ? image.width : image.height;
  const std::size_t stride = std::size_t{width} * 3;
  std::uint8_t* out = buffer.reserve(stride * height);
  jpeg::turn_upright({image.data, image.width, image.height, 3, image.stride_bytes},
                     static_cast<std::uint32_t>(orientation), out);
  return {out, width, height, stride};
}

}  // namespace shard::image
