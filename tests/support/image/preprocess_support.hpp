// What the tests of preprocessing share: pictures, a plain resize to compare with, arrays of numpy.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "shard/image/preprocess.hpp"
#include "support/image/golden_images.hpp"

namespace shard::testing {

inline image::RgbView view_of(const Pixels& pixels) {
  return {pixels.rgb.data(), pixels.width, pixels.height, std::size_t{pixels.width} * 3};
}

// Noise; every other one of black and white alone, whose resize overshoots the most.
inline Pixels random_picture(std::uint32_t width, std::uint32_t height, std::uint32_t seed) {
  std::mt19937 random(seed);
  Pixels pixels{width, height, std::vector<std::uint8_t>(std::size_t{width} * height * 3)};
  for (std::uint8_t& value : pixels.rgb) {
    value = static_cast<std::uint8_t>(random() >> 24);
    if (seed % 2 == 1) value = value < 128 ? 0 : 255;
  }
  return pixels;
}

// Waves, as a photo's: JPEG keeps something of them.
inline Pixels smooth_picture(std::uint32_t width, std::uint32_t height) {
  Pixels pixels{width, height, {}};
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      for (const double phase : {0.0, 2.0, 4.0}) {
        pixels.rgb.push_back(
            static_cast<std::uint8_t>(128 + 100 * std::sin(x / 7.0 + phase) * std::cos(y / 5.0)));
      }
    }
  }
  return pixels;
}

// Pillow's resize and a crop of it in the plainest form: both passes over the whole image, no vectors, no
// streaming.
Pixels plain_resize_crop(const Pixels& source, image::Size resized, const image::Box& box,
                         image::Filter filter);

// The bytes of a one-dimensional array of uint8.
std::vector<std::uint8_t> read_npy(const std::filesystem::path& path);

}  // namespace shard::testing
