// The draws of crops and flips.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "shard/loader/transform.hpp"

namespace shard {
namespace {

class SampleCrops : public ::testing::Test {
 protected:
  SampleSpec stored_{DType::u8, Layout::nhwc, 3, 240, 320};
  TransformOptions options_;

  SampleCrop draw(std::uint64_t sample, std::uint64_t epoch = 0) const {
    return draw_crop(stored_, options_, 7, epoch, sample);
  }
  void set_crop(CropKind kind, std::uint32_t height, std::uint32_t width) {
    options_.crop = kind;
    options_.crop_height = height;
    options_.crop_width = width;
    check_transform(stored_, options_);
  }
};

TEST_F(SampleCrops, AreTheWholeSampleWithoutACrop) {
  EXPECT_EQ(draw(5), (SampleCrop{0, 0, 320, 240, false}));
}

// torchvision's center_crop: int(round((size - crop) / 2.0)), half to even.
TEST_F(SampleCrops, CenterAsTorchvisionDoes) {
  set_crop(CropKind::center, 224, 224);
  EXPECT_EQ(draw(0), (SampleCrop{48, 8, 224, 224, false}));
  set_crop(CropKind::center, 239, 319);
  EXPECT_EQ(draw(0), (SampleCrop{0, 0, 319, 239, false}));  // 0.5 -> 0
  set_crop(CropKind::center, 237, 317);
  EXPECT_EQ(draw(0), (SampleCrop{2, 2, 317, 237, false}));  // 1.5 -> 2
}

TEST_F(SampleCrops, DependOnSeedEpochAndSampleOnly) {
  set_crop(CropKind::random_resized, 224, 224);
  options_.flip = 0.5;
  EXPECT_EQ(draw(1, 2), draw(1, 2));
  EXPECT_NE(draw(1, 2), draw(2, 2));
  EXPECT_NE(draw(1, 2), draw(1, 3));
  EXPECT_NE(draw_crop(stored_, options_, 7, 0, 1), draw_crop(stored_, options_, 8, 0, 1));
  EXPECT_NE(draw(1, 2), draw(1 + (std::uint64_t{1} << 32U), 2));
}

TEST_F(SampleCrops, CropUniformlyAtRandom) {
  set_crop(CropKind::random, 236, 320);
  std::vector<int> tops(5);
  for (std::uint64_t sample = 0; sample < 5000; ++sample) {
    const SampleCrop crop = draw(sample);
    ASSERT_EQ(crop.left, 0U);
    ASSERT_EQ(crop.width, 320U);
    ASSERT_EQ(crop.height, 236U);
    ++tops.at(crop.top);
  }
  for (int count : tops) EXPECT_NEAR(count, 1000, 150);
}

TEST_F(SampleCrops, FlipAsOftenAsAskedFor) {
  for (double probability : {0.0, 0.25, 1.0}) {
    options_.flip = probability;
    int flips = 0;
    for (std::uint64_t sample = 0; sample < 4000; ++sample) flips += draw(sample).flip ? 1 : 0;
    EXPECT_NEAR(flips, 4000 * probability, probability == 0.25 ? 120 : 0) << probability;
  }
}

// RandomResizedCrop: area uniform in scale, aspect log-uniform in ratio, of those draws that fit.
TEST_F(SampleCrops, ResizeBoxesWithinScaleAndRatio) {
  stored_.width = stored_.height = 1000;
  set_crop(CropKind::random_resized, 224, 224);
  options_.scale = {0.08, 0.5};  // every draw fits
  constexpr int kDraws = 8000;
  std::vector<int> areas(4);
  std::vector<int> ratios(4);
  double center = 0;
  for (std::uint64_t sample = 0; sample < kDraws; ++sample) {
    const SampleCrop crop = draw(sample);
    ASSERT_LE(crop.left + crop.width, 1000U);
    ASSERT_LE(crop.top + crop.height, 1000U);
    const double area = crop.width * 1e-6 * crop.height;
    const double ratio = static_cast<double>(crop.width) / crop.height;
    ASSERT_GT(area, 0.08 * 0.99);
    ASSERT_LT(area, 0.5 * 1.01);
    ASSERT_GT(ratio, 0.75 * 0.99);
    ASSERT_LT(ratio, 4.0 / 3.0 * 1.01);
    ++areas.at(static_cast<std::size_t>(std::clamp((area - 0.08) / 0.42 * 4, 0.0, 3.99)));
    ++ratios.at(
        static_cast<std::size_t>(std::clamp((std::log(ratio) / std::log(4.0 / 3.0) + 1) * 2, 0.0, 3.99)));
    center += (crop.left + crop.width / 2.0) / kDraws;
  }
  for (int count : areas) EXPECT_NEAR(count, kDraws / 4, 200);
  for (int count : ratios) EXPECT_NEAR(count, kDraws / 4, 200);
  EXPECT_NEAR(center, 500, 10);
}

TEST_F(SampleCrops, FallBackToTheMiddleWhenNoBoxFits) {
  set_crop(CropKind::random_resized, 32, 32);
  options_.scale = {1.0, 1.0};
  options_.ratio = {2.0, 2.0};  // 240 x 320 is narrower than 2 : 1
  EXPECT_EQ(draw(0), (SampleCrop{0, 40, 320, 160, false}));
  options_.ratio = {1.0, 1.0};  // and wider than 1 : 1
  EXPECT_EQ(draw(0), (SampleCrop{40, 0, 240, 240, false}));
}

TEST_F(SampleCrops, StayInsideForExtremeRatios) {
  set_crop(CropKind::random_resized, 32, 32);
  for (auto [low, high] : {std::pair{1e-300, 1e300}, {1e300, 1e300}, {1e-300, 1e-300}, {1e-5, 1e5}}) {
    options_.ratio = {low, high};
    check_transform(stored_, options_);
    for (std::uint64_t sample = 0; sample < 200; ++sample) {
      const SampleCrop crop = draw(sample);
      ASSERT_GE(crop.width, 1U);
      ASSERT_GE(crop.height, 1U);
      ASSERT_LE(crop.left + crop.width, stored_.width);
      ASSERT_LE(crop.top + crop.height, stored_.height);
    }
  }
}

// By trying all scales at which a number of patches changes.
TEST(PatchGrid, IsThatOfTheLargestScaleThatFits) {
  SampleSpec stored{DType::u8, Layout::nhwc, 3, 1, 1};
  TransformOptions options;
  options.patch = 16;
  for (std::uint32_t height : {1U, 2U, 7U, 100U, 333U, 480U, 4000U, 65535U})
    for (std::uint32_t width : {1U, 3U, 16U, 100U, 640U, 6000U, 65535U})
      for (std::uint32_t most : {1U, 2U, 3U, 16U, 100U, 256U, 729U}) {
        stored.height = height;
        stored.width = width;
        options.max_tokens = most;
        // At scale s / (height * width) a side of n pixels has ceil(n * s / (height * width)) units.
        std::uint64_t best = 0;
        std::uint64_t rows = 0;
        std::uint64_t columns = 0;
        for (std::uint64_t k = 1; k <= most; ++k)
          for (const std::uint64_t scale : {k * width, k * height}) {
            const std::uint64_t down = (scale + width - 1) / width;
            const std::uint64_t across = (scale + height - 1) / height;
            if (down * across > most || scale < best) continue;
            best = scale;
            rows = down;
            columns = across;
          }
        const SampleSize grid = patch_grid(stored, options);
        EXPECT_EQ(grid.height, rows) << height << " x " << width << ", " << most;
        EXPECT_EQ(grid.width, columns) << height << " x " << width << ", " << most;
      }
}

}  // namespace
}  // namespace shard
