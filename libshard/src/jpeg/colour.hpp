// Y, Cb, Cr -> R, G, B with libjpeg's arithmetic: 16 bits below the point, rounded, cut to 0 to 255.
//
// Source of the algorithm: libjpeg's jdcolor.c, whose tables hold the products.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/cmyk.hpp"
#include "jpeg/layout.hpp"

namespace shard::jpeg {

// 16 bits below the point, cut to 0 to 255 and a fraction: the byte is in bits 16 to 23.
SHARD_EXACT constexpr std::int32_t cut_fixed(std::int32_t value) noexcept {
  constexpr std::int32_t kMost = (1 << 24) - 1;
  const std::int32_t below = value < kMost ? value : kMost;
  return below < 0 ? 0 : below;
}
struct FixedRgb {
  std::int32_t red = 0;
  std::int32_t green = 0;
  std::int32_t blue = 0;
};
// `y`: with 16 bits below the point; `cb` and `cr`: 0 to 255.
SHARD_EXACT constexpr FixedRgb ycc_to_fixed_rgb(std::int32_t y, std::int32_t cb, std::int32_t cr) noexcept {
  constexpr std::int32_t kHalf = 1 << 15;
  return {cut_fixed(y + 91881 * cr + (kHalf - 91881 * 128)),                         // 1.40200
          cut_fixed(y - 22554 * cb - 46802 * cr + (kHalf + (22554 + 46802) * 128)),  // 0.34414, 0.71414
          cut_fixed(y + 116130 * cb + (kHalf - 116130 * 128))};                      // 1.77200
}

// In place.
SHARD_EXACT constexpr void ycc_to_rgb(std::uint8_t* pixel) noexcept {
  const FixedRgb rgb = ycc_to_fixed_rgb(pixel[0] << 16, pixel[1], pixel[2]);
  pixel[0] = static_cast<std::uint8_t>(rgb.red >> 16);
  pixel[1] = static_cast<std::uint8_t>(rgb.green >> 16);
  pixel[2] = static_cast<std::uint8_t>(rgb.blue >> 16);
}

// The components of one pixel -> the channels that are delivered. In place.
SHARD_EXACT constexpr void convert_colour(Colour colour, std::uint8_t* pixel) noexcept {
  if (colour != Colour::ycc && colour != Colour::ycck) return;
  ycc_to_rgb(pixel);
  if (colour != Colour::ycck) return;
  for (std::uint32_t c = 0; c < 3; ++c) pixel[c] = static_cast<std::uint8_t>(255 - pixel[c]);
}

// The channels that are delivered -> R, G, B. In place.
SHARD_EXACT constexpr void make_rgb(std::uint32_t components, std::uint8_t* pixel) noexcept {
  if (components == 1) pixel[1] = pixel[2] = pixel[0];
  if (components == 4) inverted_cmyk_to_rgb(pixel, pixel);
}

}  // namespace shard::jpeg
