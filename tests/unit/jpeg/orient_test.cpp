#include "jpeg/orient.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/jpeg/jpeg_samples.hpp"

namespace shard::testing {
namespace {

// Buffers of exactly the size of the image, so that a sanitizer sees each byte beyond it.
TEST(JpegOrient, EachPixelComesFromWhereTheOrientationSays) {
  std::mt19937_64 random(1);
  for (const std::uint32_t channels : {1U, 3U})
    for (std::uint32_t width = 1; width <= 70; width += width < 9 ? 1 : 13)
      for (std::uint32_t height = 1; height <= 70; height += height < 9 ? 1 : 13) {
        const std::size_t stride = std::size_t{width} * channels + random() % 3;
        std::vector<std::uint8_t> image(stride * (height - 1) + std::size_t{width} * channels);
        for (std::uint8_t& value : image) value = static_cast<std::uint8_t>(random());
        for (int orientation = 2; orientation <= 8; ++orientation) {
          std::vector<std::uint8_t> upright(std::size_t{width} * height * channels);
          jpeg::turn_upright({image.data(), width, height, channels, stride},
                             static_cast<std::uint32_t>(orientation), upright.data());
          const std::uint32_t columns = orientation < 5 ? width : height;
          for (std::size_t i = 0; i < upright.size(); ++i) {
            const auto x = static_cast<std::uint32_t>(i / channels % columns);
            const auto y = static_cast<std::uint32_t>(i / channels / columns);
            const auto [column, row] = stored_at(x, y, orientation, width, height);
            ASSERT_EQ(upright[i], image[row * stride + std::size_t{column} * channels + i % channels])
                << width << "x" << height << "x" << channels << ", orientation " << orientation;
          }
          std::vector<std::uint8_t> by_strips(upright.size());
          for (std::uint32_t first = 0, rows = 0; first < height; first += rows) {
            rows = std::min(height - first, static_cast<std::uint32_t>(1 + random() % 40));
            const std::size_t size = stride * (rows - 1) + std::size_t{width} * channels;
            const std::vector<std::uint8_t> strip(
                image.begin() + static_cast<std::ptrdiff_t>(first * stride),
                image.begin() + static_cast<std::ptrdiff_t>(first * stride + size));
            jpeg::turn_rows({strip.data(), width, rows, channels, stride}, first, height,
                            static_cast<std::uint32_t>(orientation), by_strips.data());
          }
          ASSERT_EQ(by_strips, upright) << width << "x" << height << ", orientation " << orientation;
        }
      }
}

}  // namespace
}  // namespace shard::testing
