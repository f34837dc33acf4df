// Operations that are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/expect_error.hpp"
#include "support/transform/augment_support.hpp"

namespace shard {
namespace {

using testing::kColor;

TEST(CheckOperations, RefusalsNameViewOperationValueAndBound) {
  const auto refused = [](const SampleSpec& spec, const Operation& operation, const char* message) {
    EXPECT_SHARD_ERROR(check_operations(spec, std::vector<Operation>({ops::Invert{}, operation}), 2),
                       ErrorCode::invalid_argument, message);
  };
  SampleSpec bands = kColor;
  bands.channels = 4;
  refused(bands, ops::ColorJitter{.hue = Range{0, 0.1}},
          "view 2, operation 1 (color_jitter): the samples have 4 channels; it is defined for 1 or 3");
  refused(bands, ops::RandAugment{}, "(rand_augment): the samples have 4 channels");
  refused(kColor, ops::ColorJitter{.hue = Range{0, 0.6}},
          "hue is [0, 0.6]; it must be -0.5 <= low <= high <= 0.5");
  refused(kColor, ops::ColorJitter{.brightness = Range{-1, 0.6}}, "brightness is [-1, 0.6]");
  refused(kColor, ops::GaussianBlur{22}, "kernel_size is 22; it must be odd, 1 to 31");
  refused({DType::u8, Layout::nhwc, 3, 11, 40}, ops::GaussianBlur{23},
          "half of kernel_size is 11; it must be less than rows and columns, which are 11 x 40");
  refused(kColor, ops::GaussianBlur{3, {0, 1}}, "sigma is [0, 1]");
  refused(kColor, ops::Solarize{256}, "threshold is 256; it must be 0 to 255");
  refused(kColor, ops::Posterize{9}, "bits is 9; it must be 0 to 8");
  refused(kColor, ops::Sharpness{{std::nan(""), 1}}, "factor is [nan, 1]");
  refused(kColor, ops::Permute{{{0, 0, 1, 0}}}, "order has channel 0 at 1; it must have each of 0 to 2 once");
  refused(kColor, ops::Affine{.translate = {0, 1.5}}, "translate is 1.5; it must be 0 to 1");
  refused(kColor, ops::Affine{.scale = {0, 1}}, "scale is [0, 1]");
  refused(kColor, ops::Rotation{.fill = std::array<float, 4>{0, 300, 0, 0}},
          "fill is 300; it must be 0 to 255");
  refused(kColor, ops::Perspective{1.1}, "distortion is 1.1; it must be 0 to 1");
  refused(kColor, ops::Erasing{{0.5, 0.2}}, "scale is [0.5, 0.2]");
  refused(kColor, ops::Turns{}, "the sample must be as high as wide, or turns 2");
  refused(kColor, ops::Turns{4}, "turns is 4; it must be 0 to 3");
  refused(kColor, ops::PaddedCrop{37, true}, "padding is 37; it must be less than rows and columns");
  refused(kColor, ops::RandAugment{2, 31}, "magnitude is 31; it must be 0 to 30");
  refused(kColor, ops::ChannelDropout{3},
          "count is 3; it must be less than the channels of the samples, which are 3");
  refused(kColor, ops::AugMix{0}, "severity is 0; it must be 1 to 10");
  refused(kColor, ops::Invert{1.5}, "p is 1.5; it must be 0 to 1");
  SampleSpec floats = kColor;
  floats.dtype = DType::f16;
  refused(floats, ops::Grayscale{},
          "view 2, operation 0 (invert): operations are defined for samples stored as u8 or with codec "
          "packed, not as f16");
}

}  // namespace
}  // namespace shard
