// A small picture whose pixels all differ.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/image/decode.hpp"

namespace shard::testing {

struct SmallPicture {
  SmallPicture(std::uint32_t columns, std::uint32_t rows) : width(columns), height(rows) {
    for (std::uint32_t y = 0; y < height; ++y)
      for (std::uint32_t x = 0; x < width; ++x)
        for (const std::uint32_t value : {x * 9 + 3, y * 11 + 5, x * 5 + y * 7})
          rgb.push_back(static_cast<std::uint8_t>(value));
  }
  image::RgbView view() const { return {rgb.data(), width, height, std::size_t{width} * 3}; }
  const std::uint8_t* at(std::uint32_t x, std::uint32_t y) const {
    return rgb.data() + (std::size_t{y} * width + x) * 3;
  }

  std::uint32_t width;
  std::uint32_t height;
  std::vector<std::uint8_t> rgb;
};

}  // namespace shard::testing
