// Pixels to a baseline JPEG by libjpeg-turbo: one scan, its standard Huffman tables, ISLOW.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shard::libjpeg {

// [row, column, channel] of bytes.
struct PixelsIn {
  const std::uint8_t* data = nullptr;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 3;  // 1: gray, 3: RGB
  std::size_t stride_bytes = 0;
};

// Of the first component to the others; 2 and 2 is 4:2:0.
struct Sampling {
  int horizontal = 2;
  int vertical = 2;
};

// Errors: invalid_argument (quality outside of 1 to 100; a side that a JPEG cannot have), resource.
std::vector<std::byte> encode(const PixelsIn& image, int quality, const Sampling& sampling = {});

}  // namespace shard::libjpeg
