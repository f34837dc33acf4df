// Y, Cb, Cr -> R, G, B with libjpeg's arithmetic: 16 bits below the point, rounded, cut to 0 to 255.
//
// Source of the algorithm: libjpeg's jdcolor.c, whose tables hold the products.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
#include "jpeg/layout.hpp"

namespace shard::jpeg {

SHARD_EXACT constexpr std::uint8_t byte_of(std::int32_t value) noexcept {
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

// In place.
SHARD_EXACT constexpr void ycc_to_rgb(std::uint8_t* pixel) noexcept {
  constexpr std::int32_t kHalf = 1 << 15;
  const std::int32_t y = pixel[0];
  const std::int32_t blue = pixel[1] - 128;
  const std::int32_t red = pixel[2] - 128;
  pixel[0] = byte_of(y + ((91881 * red + kHalf) >> 16));                  // 1.40200
  pixel[1] = byte_of(y + ((-22554 * blue - 46802 * red + kHalf) >> 16));  // 0.34414, 0.71414
  pixel[2] = byte_of(y + ((116130 * blue + kHalf) >> 16));                // 1.77200
}

// The components of one pixel -> the channels that are delivered. In place.
SHARD_EXACT constexpr void convert_colour(Colour colour, std::uint8_t* pixel) noexcept {
  if (colour != Colour::ycc && colour != Colour::ycck) return;
  ycc_to_rgb(pixel);
  if (colour != Colour::ycck) return;
  for (std::uint32_t c = 0; c < 3; ++c) pixel[c] = static_cast<std::uint8_t>(255 - pixel[c]);
}

// a * b / 255, rounded to nearest, for bytes.
SHARD_EXACT constexpr std::uint32_t multiply_bytes(std::uint32_t a, std::uint32_t b) noexcept {
  const std::uint32_t t = a * b + 128;
  return ((t >> 8) + t) >> 8;
}

// What libjpeg delivers of four components -> R, G, B with Pillow's arithmetic: taken as inverted (Adobe's
// convention, rawmode "CMYK;I"), then converted as libImaging's cmyk2rgb does. `rgb` may be `cmyk`.
SHARD_EXACT constexpr void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb) noexcept {
  const std::uint32_t light = cmyk[3];  // 255 - black
  for (std::uint32_t c = 0; c < 3; ++c) {
    const std::uint32_t ink = 255U - cmyk[c];
    rgb[c] = static_cast<std::uint8_t>(light - multiply_bytes(ink, light));
  }
}

// The channels that are delivered -> R, G, B. In place.
SHARD_EXACT constexpr void make_rgb(std::uint32_t components, std::uint8_t* pixel) noexcept {
  if (components == 1) pixel[1] = pixel[2] = pixel[0];
  if (components == 4) inverted_cmyk_to_rgb(pixel, pixel);
}

}  // namespace shard::jpeg
