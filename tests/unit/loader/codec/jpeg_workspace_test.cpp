// The memory between frames of codec jpeg and their samples, and the bands of samples that have more.
#include "codec/jpeg_workspace.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

namespace shard::testing {
namespace {

jpeg::FrameFile file_of(std::uint32_t width, std::uint32_t height, std::uint32_t orientation,
                        std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> factors) {
  jpeg::FrameFile file;
  file.bytes = 1000;
  file.size = width | height << 16;
  file.orientation = orientation;
  std::uint32_t component = 0;
  for (const auto& [h, v] : factors) file.factors |= jpeg::factors_of(component++, h, v);
  jpeg::check_frame_file(file);
  return file;
}

std::vector<jpeg::FrameFile> files(std::uint32_t width, std::uint32_t height, std::uint32_t orientation) {
  return {file_of(width, height, orientation, {{1, 1}}),
          file_of(width, height, orientation, {{2, 2}, {1, 1}, {1, 1}}),
          file_of(width, height, orientation, {{3, 1}, {1, 1}, {1, 1}}),
          file_of(width, height, orientation, {{1, 4}, {1, 1}, {1, 2}}),
          file_of(width, height, orientation, {{4, 2}, {1, 1}, {1, 1}}),
          file_of(width, height, orientation, {{2, 1}, {1, 1}, {1, 1}, {2, 1}})};
}

// Each pixel of the box is in one band, and each band fits, if there is the least that is asked for.
TEST(JpegWorkspace, BandsOfABoxAreItsPartsAndFit) {
  std::mt19937_64 random(5);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t width = 1 + below(150);
    const std::uint32_t height = 1 + below(150);
    for (const jpeg::FrameFile& file : files(width, height, 1 + below(8))) {
      const std::uint32_t left = below(file.upright_width());
      const std::uint32_t top = below(file.upright_height());
      const jpeg::PixelBox box{left, top, 1 + below(file.upright_width() - left),
                               1 + below(file.upright_height() - top)};
      const std::uint32_t channels = file.components() == 1 ? 1 : 3;
      const std::uint64_t room =
          least_jpeg_workspace_bytes(file.upright_height(), file.upright_width(), channels) +
          (round % 2 == 0 ? 0 : random() % 200'000);
      std::vector<JpegBand> bands;
      add_jpeg_bands(file, box, room, bands);
      std::set<std::pair<std::uint32_t, std::uint32_t>> pixels;
      std::uint64_t count = 0;
      for (const auto& [band, bytes] : bands) {
        EXPECT_EQ(bytes, jpeg_workspace_bytes(file, band));
        EXPECT_LE(bytes, room);
        ASSERT_TRUE(band.left >= box.left && band.left + band.width <= box.left + box.width);
        ASSERT_TRUE(band.top >= box.top && band.top + band.height <= box.top + box.height);
        count += std::uint64_t{band.width} * band.height;
        for (std::uint32_t y = 0; y < band.height; ++y)
          for (std::uint32_t x = 0; x < band.width; ++x) pixels.insert({band.left + x, band.top + y});
      }
      EXPECT_EQ(count, std::uint64_t{box.width} * box.height);
      EXPECT_EQ(pixels.size(), count) << "bands overlap";
    }
  }
}

TEST(JpegWorkspace, APartTakesNoMoreThanTheWhole) {
  for (const jpeg::FrameFile& file : files(300, 200, 6)) {
    const jpeg::PixelBox whole{0, 0, file.upright_width(), file.upright_height()};
    std::vector<JpegBand> bands;
    const std::uint64_t all = jpeg_workspace_bytes(file, whole);
    add_jpeg_bands(file, whole, all, bands);
    EXPECT_EQ(bands.size(), 1U);
    EXPECT_LT(jpeg_workspace_bytes(file, {0, 0, 20, 20}), all);
    bands.clear();
    add_jpeg_bands(file, whole, all - 1, bands);
    EXPECT_GT(bands.size(), 1U);
  }
}

// 4:2:0 of 500 x 375 pixels, beside what is planned for it.
TEST(JpegWorkspace, PlansAsMuchAsPhotographsTake) {
  const jpeg::FrameFile file = file_of(500, 375, 1, {{2, 2}, {1, 1}, {1, 1}});
  const std::uint64_t taken = jpeg_workspace_bytes(file, {0, 0, 500, 375});
  const std::uint64_t planned = usual_jpeg_workspace_bytes(500 * 375, 3);
  EXPECT_GE(planned, taken);
  EXPECT_LE(planned, taken + taken / 10);
}

}  // namespace
}  // namespace shard::testing
