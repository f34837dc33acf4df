// CMYK as JPEG stores it -> RGB, with Pillow's arithmetic: four-component JPEGs are taken as inverted
// (Adobe's convention, rawmode "CMYK;I"), then converted as libImaging's cmyk2rgb does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shard::image {

// `pixels` x 4 bytes (255 - cyan, magenta, yellow, black) -> `pixels` x 3 bytes. The ranges do not overlap.
void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb, std::size_t pixels) noexcept;

}  // namespace shard::image
