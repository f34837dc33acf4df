// What codec jpeg makes of a file, by plain loops over what libjpeg-turbo decodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "support/jpeg/jpeg_files.hpp"

namespace shard::testing {

// The pixel of the stored image that is at (x, y) of the upright one.
inline std::pair<std::uint32_t, std::uint32_t> stored_at(std::uint32_t x, std::uint32_t y, int orientation,
                                                         std::uint32_t width, std::uint32_t height) {
  switch (orientation) {
    case 2:
      return {width - 1 - x, y};
    case 3:
      return {width - 1 - x, height - 1 - y};
    case 4:
      return {x, height - 1 - y};
    case 5:
      return {y, x};
    case 6:
      return {y, height - 1 - x};
    case 7:
      return {width - 1 - y, height - 1 - x};
    case 8:
      return {width - 1 - y, x};
    default:
      return {x, y};
  }
}

// [row, column, channel], upright, of 1 or 3 channels.
inline std::vector<std::byte> jpeg_sample(std::span<const std::byte> file, std::uint32_t channels,
                                          int orientation, bool accept = false) {
  const JpegPixels image = decode_jpeg(file, accept);
  const std::uint32_t width = orientation < 5 ? image.width : image.height;
  const std::uint32_t height = orientation < 5 ? image.height : image.width;
  std::vector<std::byte> sample;
  for (std::uint32_t y = 0; y < height; ++y)
    for (std::uint32_t x = 0; x < width; ++x) {
      const auto [column, row] = stored_at(x, y, orientation, image.width, image.height);
      const std::uint8_t* pixel =
          image.values.data() + (std::size_t{row} * image.width + column) * image.channels;
      for (std::uint32_t c = 0; c < channels; ++c) {
        int value = pixel[image.channels == 1 ? 0 : c];
        if (image.channels == 4)  // inverted CMYK: light minus ink times light
          value = pixel[3] - static_cast<int>((255 - value) * int{pixel[3]} / 255.0 + 0.5);
        sample.push_back(static_cast<std::byte>(value));
      }
    }
  return sample;
}

inline SampleSpec jpeg_spec(std::uint32_t channels = 3) { return {DType::u8, Layout::nhwc, channels, 0, 0}; }

}  // namespace shard::testing
