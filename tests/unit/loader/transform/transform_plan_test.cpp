// What check_transform() refuses, and what plan_transform() plans.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "shard/dataset.hpp"
#include "shard/loader/transform.hpp"
#include "support/expect_error.hpp"

namespace shard {
namespace {

class CheckTransform : public ::testing::Test {
 protected:
  void set_crop(CropKind kind, std::uint32_t height, std::uint32_t width) {
    options_.crop = kind;
    options_.crop_height = height;
    options_.crop_width = width;
    check_transform(stored_, options_);
  }
  void expect_refusal(const char* piece) const {
    EXPECT_SHARD_ERROR(check_transform(stored_, options_), ErrorCode::invalid_argument, piece);
  }
  SampleSpec stored_{DType::u8, Layout::nhwc, 3, 240, 320};
  TransformOptions options_;
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
  options_.flip = 0.5;
  EXPECT_FALSE(is_identity(stored_, options_));
  options_.flip = 0;
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
    options_.flip = probability;
    expect_refusal("flip is");
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
  expect_refusal("std above 0");
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
