// Turns a stored image upright: EXIF orientation 1 to 8, the same pixels as Pillow's ImageOps.exif_transpose.
//
//   1 as is        2 mirrored        3 rotated 180    4 flipped
//   5 transposed   6 rotated 90 cw   7 transversed    8 rotated 90 ccw
#pragma once

#include "image/pixels/pixel_buffer.hpp"
#include "shard/image/decode.hpp"

namespace shard::image {

// `image` itself if orientation is 1, else a view of `buffer`. `image` must not be in `buffer`.
RgbView turn_upright(const RgbView& image, int orientation, PixelBuffer& buffer);

}  // namespace shard::image
