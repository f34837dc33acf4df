// Turns a stored image upright (jpeg/orient.hpp).
#pragma once

#include "image/pixels/pixel_buffer.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// `image` itself if orientation is 1, else a view of `buffer`. `image` must not be in `buffer`.
RgbView turn_upright(const RgbView& image, int orientation, PixelBuffer& buffer);

}  // namespace shard::image
