// Upsampling as libjpeg-turbo does it by default ("fancy", not merged), per pixel. Which way a component
// takes depends on its factors alone:
//
//   factors of image / component      way
//   1 x 1                             as it is
//   2 x 1, more than 2 samples wide   triangle: 3/4 of the nearer sample, 1/4 of the farther one, in its row
//   1 x 2                             the same down the columns
//   2 x 2, more than 2 samples wide   both: 9/16, 3/16, 3/16, 1/16
//   all others (4 x 1, 3 x 1, 2 x 1 narrow)  repeated
//
// Beyond the edge the sample at the edge counts. Roundings differ between even and odd pixels, so that they
// make no drift. Source of the algorithm: libjpeg's jdsample.c; libjpeg-turbo added 1 x 2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/layout.hpp"

namespace shard::jpeg {

enum class Upsampling : std::uint8_t { none, across, down, both, repeat };

SHARD_EXACT constexpr Upsampling upsampling_of(const Layout& layout, std::uint32_t component) noexcept {
  const Plane& plane = layout.planes[component];
  const bool wide = plane.width > 2;
  const bool same_h = plane.h == layout.h_max;
  const bool same_v = plane.v == layout.v_max;
  const bool half_h = plane.h * 2 == layout.h_max;
  const bool half_v = plane.v * 2 == layout.v_max;
  if (same_h && same_v) return Upsampling::none;
  if (half_h && same_v && wide) return Upsampling::across;
  if (same_h && half_v) return Upsampling::down;
  if (half_h && half_v && wide) return Upsampling::both;
  return Upsampling::repeat;
}

// The samples [left, left + width) of rows [top, top + height) of a component's plane, `stride` apart.
struct Samples {
  const std::uint8_t* data = nullptr;
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t stride = 0;

  SHARD_EXACT std::int32_t at(std::uint32_t x, std::uint32_t y) const {
    return data[std::size_t{y - top} * stride + (x - left)];
  }
};

// The neighbour of sample i / 2 that is nearer to pixel i.
SHARD_EXACT constexpr std::uint32_t neighbour(std::uint32_t i, std::uint32_t size) noexcept {
  const std::uint32_t sample = i / 2;
  if (i % 2 == 0) return sample == 0 ? 0 : sample - 1;
  return sample + 1 < size ? sample + 1 : size - 1;
}

// The value of a component at pixel (x, y) of the image.
SHARD_EXACT inline std::uint8_t upsampled(const Layout& layout, const Plane& plane, Upsampling way,
                                          const Samples& samples, std::uint32_t x, std::uint32_t y) {
  if (way == Upsampling::none) return static_cast<std::uint8_t>(samples.at(x, y));
  if (way == Upsampling::across) {
    const std::int32_t sum = 3 * samples.at(x / 2, y) + samples.at(neighbour(x, plane.width), y);
    return static_cast<std::uint8_t>((sum + (x % 2 == 0 ? 1 : 2)) >> 2);
  }
  if (way == Upsampling::down) {
    const std::int32_t sum = 3 * samples.at(x, y / 2) + samples.at(x, neighbour(y, plane.height));
    return static_cast<std::uint8_t>((sum + (y % 2 == 0 ? 1 : 2)) >> 2);
  }
  if (way == Upsampling::both) {
    const std::uint32_t other_x = neighbour(x, plane.width);
    const std::uint32_t other_y = neighbour(y, plane.height);
    const std::int32_t near = 3 * samples.at(x / 2, y / 2) + samples.at(x / 2, other_y);
    const std::int32_t far = 3 * samples.at(other_x, y / 2) + samples.at(other_x, other_y);
    return static_cast<std::uint8_t>((3 * near + far + (x % 2 == 0 ? 8 : 7)) >> 4);
  }
  return static_cast<std::uint8_t>(samples.at(x * plane.h / layout.h_max, y * plane.v / layout.v_max));
}

}  // namespace shard::jpeg
