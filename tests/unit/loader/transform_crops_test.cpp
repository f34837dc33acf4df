// Philox, the draws of crops and flips, and what check_transform() refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "expect_error.hpp"
#include "shard/dataset.hpp"
#include "shard/loader/transform.hpp"
#include "transform/philox.hpp"

namespace shard {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers of Random123 (kat_vectors).
TEST(Philox, GivesThePublishedWords) {
  constexpr std::uint32_t kOnes = 0xFFFFFFFFU;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627E8D5U, 0xE169C58DU, 0xBC57AC4CU, 0x9B00DBD8U}));
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408F276DU, 0x41C83B0EU, 0xA20BC7C6U, 0x6D5451FDU}));
  EXPECT_EQ(philox4x32({0x243F6A88U, 0x85A308D3U, 0x13198A2EU, 0x03707344U}, {0xA4093822U, 0x299F31D0U}),
            (Words{0xD16CFE09U, 0x94FDCCEBU, 0x5001E420U, 0x24126EA1U}));
}

TEST(SampleRandom, DrawsWordsInTheOrderOfTheBlocks) {
  SampleRandom random(1, 2, 3);
  for (std::uint32_t block = 0; block < 3; ++block)
    for (std::uint32_t word : philox4x32({3, 0, 2, block}, {1, 0}))
      ASSERT_EQ(random.uniform(), word * 0x1p-32);
}

TEST(SampleRandom, StaysBelowItsBound) {
  SampleRandom random(4, 0, 0);
  std::vector<int> counts(7);
  for (int i = 0; i < 7000; ++i) ++counts.at(random.below(7));
  for (int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.below(1), 0U);
}

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
  options_.flip_probability = 0.5;
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
    options_.flip_probability = probability;
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

class CheckTransform : public SampleCrops {
 protected:
  void expect_refusal(const char* piece) const {
    EXPECT_SHARD_ERROR(check_transform(stored_, options_), ErrorCode::invalid_argument, piece);
  }
};

TEST_F(CheckTransform, SaysWhatIsDelivered) {
  set_crop(CropKind::random_resized, 224, 192);
  options_.dtype = DType::f16;
  options_.layout = Layout::nchw;
  EXPECT_EQ(check_transform(stored_, options_), (SampleSpec{DType::f16, Layout::nchw, 3, 224, 192}));
}

TEST_F(CheckTransform, KnowsWhenThereIsNothingToDo) {
  EXPECT_TRUE(is_identity(stored_, options_));
  set_crop(CropKind::center, 240, 320);
  EXPECT_TRUE(is_identity(stored_, options_));
  options_.flip_probability = 0.5;
  EXPECT_FALSE(is_identity(stored_, options_));
  options_.flip_probability = 0;
  set_crop(CropKind::random_resized, 240, 320);
  EXPECT_FALSE(is_identity(stored_, options_));
}

TEST_F(CheckTransform, RefusesCropsThatCannotBe) {
  options_.crop_height = 5;
  expect_refusal("crop is none");
  options_.crop = CropKind::center;
  expect_refusal("must be at least 1");
  options_.crop_width = 321;
  expect_refusal("crop of 5 x 321 is larger than the stored samples of 240 x 320");
  options_.crop = CropKind::random_resized;
  options_.crop_width = 8193;
  expect_refusal("exceeds 8192 x 8192");
  options_.crop_width = 9;
  expect_refusal("more than 32 times");
  options_.crop_width = 10;
  options_.crop_height = 8;
  EXPECT_NO_THROW(check_transform(stored_, options_));
}

TEST_F(CheckTransform, RefusesScaleRatioAndProbabilityOutsideTheirBounds) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  options_.crop = CropKind::random_resized;
  options_.crop_height = options_.crop_width = 100;
  for (auto scale : {std::array{0.0, 1.0}, {0.5, 1.5}, {0.6, 0.5}, {nan, 1.0}, {0.5, nan}}) {
    options_.scale = scale;
    expect_refusal("scale is");
  }
  options_.scale = {0.1, 1.0};
  for (auto ratio :
       {std::array{0.0, 1.0}, {2.0, 1.0}, {1.0, nan}, {1.0, std::numeric_limits<double>::infinity()}}) {
    options_.ratio = ratio;
    expect_refusal("ratio is");
  }
  options_.ratio = {1.0, 1.0};
  for (double probability : {-0.1, 1.1, nan}) {
    options_.flip_probability = probability;
    expect_refusal("flip_probability is");
  }
}

TEST_F(CheckTransform, RefusesTypesThatDoNotFit) {
  options_.dtype = DType::f64;
  expect_refusal("f64 cannot be delivered");
  options_.dtype = DType::u8;
  options_.normalization = Normalization{};
  expect_refusal("normalization applies to samples delivered as f16, bf16 or f32");
  options_.dtype = DType::f16;
  options_.normalization->std[1] = 0;
  expect_refusal("std not 0");
  options_.normalization.reset();
  for (DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    stored_.dtype = dtype;
    options_.dtype = DType::u8;
    expect_refusal("convert the images with dtype u8 or codec packed");
    options_.dtype = DType::f16;
    EXPECT_NO_THROW(check_transform(stored_, options_));
  }
}

// What is stored, delivered and computed of data sets of each kind.
class PlanTransform : public CheckTransform {
 protected:
  PlanTransform() {
    info_.spec = {DType::f16, Layout::nchw, 3, 224, 224};
    info_.normalization = kImagenet;
  }
  TransformWork plan() const { return plan_transform(info_, options_); }
  void expect_plan_refusal(const char* piece) const {
    EXPECT_SHARD_ERROR(plan_transform(info_, options_), ErrorCode::invalid_argument, piece);
    EXPECT_SHARD_ERROR(is_identity(info_, options_), ErrorCode::invalid_argument, piece);
  }
  inline static const Normalization kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  inline static const Normalization kHalf{{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}};
  DatasetInfo info_;
};

TEST_F(PlanTransform, CastsCropsAndResizesFloatsAsTheyAre) {
  EXPECT_TRUE(is_identity(info_, options_));
  set_crop(CropKind::random_resized, 96, 64);
  options_.dtype = DType::bf16;
  options_.layout = Layout::nhwc;
  EXPECT_EQ(plan().stored, info_.spec);
  EXPECT_EQ(plan().delivered, (SampleSpec{DType::bf16, Layout::nhwc, 3, 96, 64}));
  EXPECT_FALSE(plan().normalize);
  EXPECT_FALSE(is_identity(info_, options_));
}

TEST_F(PlanTransform, KnowsThatFloatsHaveTheRecordedNormalization) {
  options_.normalization = kImagenet;
  EXPECT_FALSE(plan().normalize);
  EXPECT_TRUE(is_identity(info_, options_));
  options_.normalization = kHalf;
  expect_plan_refusal("leave normalization out");
  info_.normalization = {};
  EXPECT_TRUE(plan().normalize);
  EXPECT_EQ(plan().normalization, kHalf);
  EXPECT_FALSE(is_identity(info_, options_));
}

TEST_F(PlanTransform, TakesFloatsOfCodecPackedForTheirBytes) {
  info_.codec = {CodecSpec::Kind::packed};
  EXPECT_EQ(plan().stored.dtype, DType::u8);
  EXPECT_EQ(plan().delivered, info_.spec);
  EXPECT_TRUE(plan().normalize);
  EXPECT_EQ(plan().normalization, kImagenet);
  EXPECT_FALSE(is_identity(info_, options_));
  options_.normalization = kHalf;
  EXPECT_EQ(plan().normalization, kHalf);
  options_.normalization.reset();
  options_.dtype = DType::u8;
  EXPECT_EQ(plan().delivered.dtype, DType::u8);
  EXPECT_FALSE(plan().normalize);
}

TEST_F(PlanTransform, NormalizesBytesWithWhatIsRecordedOrAskedFor) {
  info_.spec.dtype = DType::u8;
  EXPECT_TRUE(is_identity(info_, options_));
  options_.dtype = DType::f32;
  EXPECT_TRUE(plan().normalize);
  EXPECT_EQ(plan().normalization, kImagenet);
  options_.normalization = kHalf;
  EXPECT_EQ(plan().normalization, kHalf);
}

}  // namespace
}  // namespace shard
