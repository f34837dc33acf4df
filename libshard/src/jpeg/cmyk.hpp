// CMYK as JPEG stores it -> RGB, with Pillow's arithmetic: four-component JPEGs are taken as inverted
// (Adobe's convention, rawmode "CMYK;I"), then converted as libImaging's cmyk2rgb does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.hpp"

namespace shard::jpeg {

// a * b / 255, rounded to nearest, for bytes.
SHARD_EXACT constexpr std::uint32_t multiply_bytes(std::uint32_t a, std::uint32_t b) noexcept {
  const std::uint32_t t = a * b + 128;
  return ((t >> 8) + t) >> 8;
}

// One pixel: 4 bytes (255 - cyan, magenta, yellow, black) -> 3 bytes, which may be the first of them.
SHARD_EXACT constexpr void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb) noexcept {
  const std::uint32_t light = cmyk[3];  // 255 - black
  for (std::uint32_t c = 0; c < 3; ++c)
    rgb[c] = static_cast<std::uint8_t>(light - multiply_bytes(255U - cmyk[c], light));
}

// The ranges do not overlap.
inline void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb, std::size_t pixels) noexcept {
  for (std::size_t i = 0; i < pixels; ++i) inverted_cmyk_to_rgb(cmyk + 4 * i, rgb + 3 * i);
}

}  // namespace shard::jpeg
