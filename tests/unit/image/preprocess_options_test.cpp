// Options are refused with their name and bound; sizes follow torchvision.
#include <gtest/gtest.h>

#include <limits>

#include "expect_error.hpp"
#include "preprocess_support.hpp"

namespace shard::testing {
namespace {

using namespace image;

void expect_refused(const PreprocessOptions& options, const std::string& piece) {
  EXPECT_SHARD_ERROR(options.check(), ErrorCode::invalid_argument, piece);
  EXPECT_SHARD_ERROR(Preprocessor{options}, ErrorCode::invalid_argument, piece);
}

PreprocessOptions with(void (*change)(PreprocessOptions&)) {
  PreprocessOptions options;
  change(options);
  return options;
}

TEST(PreprocessOptions, AreRefusedWithNameAndBound) {
  using O = PreprocessOptions;
  expect_refused(with([](O& o) { o.resize_short = 0; }), "`resize` is 0: give a number from 1 to 65535");
  expect_refused(with([](O& o) { o.resize_short = 65536; }), "`resize` is 65536");
  expect_refused(with([](O& o) { o.squash = Size{0, 300}; }), "`squash` width is 0");
  expect_refused(with([](O& o) { o.squash = Size{300, 70000}; }), "`squash` height is 70000");
  expect_refused(with([](O& o) { o.crop = Size{0, 1}; }), "`crop` width is 0");
  expect_refused(with([](O& o) { o.crop = Size{1, 65536}; }), "`crop` height is 65536");
  expect_refused(with([](O& o) { o.crop = Size{257, 10}; }), "`crop` is 257x10, larger than the 256x256");
  expect_refused(with([](O& o) { o.crop = Size{10, 257}; }), "`crop` is 10x257");
  expect_refused(with([](O& o) { o.squash = Size{300, 200}; }), "`crop` is 224x224, larger than the 300x200");
  expect_refused(with([](O& o) { o.crop.reset(); }), "`crop` is none");
  expect_refused(with([](O& o) { o.dtype = DType::i64; }), "`dtype` is i64: give u8, u16, f16, bf16 or f32");
  expect_refused(with([](O& o) { o.channels = 4097; }), "`channels` is 4097: give 1 to 4096");
  expect_refused(with([](O& o) { o.normalization.mean.push_back(0); }), "`mean` has 4 numbers and `std` 3");
  const auto five = [](O& o) { o.normalization = {{0.1F, 0.2F, 0.3F, 0.4F, 0.5F}, {1, 1, 1, 1, 1}}; };
  expect_refused(with(five), "have 5 numbers, the samples 3 channels");
  O fits = with(five);
  fits.channels = 5;
  fits.check();
  expect_refused(with([](O& o) { o.filter = static_cast<Filter>(9); }), "`filter` is 9");
  expect_refused(with([](O& o) { o.layout = static_cast<Layout>(9); }), "`layout` is 9");
  expect_refused(with([](O& o) { o.normalization.std[1] = 0.0F; }), "`std` of channel 1 is 0");
  expect_refused(with([](O& o) { o.normalization.std[2] = std::numeric_limits<float>::quiet_NaN(); }),
                 "`std` of channel 2");
  expect_refused(with([](O& o) {
                   o.normalization.mean = {123.7F, 116.3F, 103.5F};
                 }),
                 "mean 123.7 and std 1 in channel 0: values are 0 to 1 before they are normalised");
  expect_refused(with([](O& o) { o.normalization.std[2] = 255.0F; }), "std 255 in channel 2");
  expect_refused(with([](O& o) { o.normalization.mean[0] = std::numeric_limits<float>::infinity(); }),
                 "`mean` of channel 0");
}

TEST(PreprocessOptions, AtTheirBoundsAreTaken) {
  with([](PreprocessOptions& o) { o.resize_short = 65535; }).check();
  with([](PreprocessOptions& o) { o.crop = Size{256, 256}; }).check();
  with([](PreprocessOptions& o) { o.resize_short = 1, o.crop = Size{1, 1}; }).check();
  with([](PreprocessOptions& o) { o.resize_short = 0, o.squash = Size{224, 224}; }).check();
  with([](PreprocessOptions& o) { o.squash = Size{65535, 1}, o.crop.reset(); }).check();
}

TEST(PreprocessOptions, GiveTheShapeOfTheSample) {
  PreprocessOptions options;
  options.crop = Size{200, 100};
  options.layout = Layout::nhwc;
  EXPECT_EQ(options.sample_spec(), (SampleSpec{DType::f16, Layout::nhwc, 3, 100, 200}));
  options.squash = Size{640, 480};
  options.crop.reset();
  EXPECT_EQ(options.sample_spec(), (SampleSpec{DType::f16, Layout::nhwc, 3, 480, 640}));
}

TEST(PreprocessOptions, ResizeTheShortSideAndTruncateTheLongOne) {
  const PreprocessOptions options;
  EXPECT_EQ(resized_size({500, 375}, options), (Size{341, 256}));
  EXPECT_EQ(resized_size({375, 500}, options), (Size{256, 341}));
  EXPECT_EQ(resized_size({256, 700}, options), (Size{256, 700}));
  EXPECT_EQ(resized_size({100, 100}, options), (Size{256, 256}));
  EXPECT_EQ(resized_size({1, 65535}, options), (Size{256, 16776960}));
}

TEST(PreprocessOptions, CropTheMiddleRoundingHalvesToEven) {
  PreprocessOptions options;
  options.crop = Size{10, 10};
  for (const auto& [whole, left] :
       {std::pair{10U, 0U}, {11U, 0U}, {12U, 1U}, {13U, 2U}, {15U, 2U}, {17U, 4U}}) {
    EXPECT_EQ(crop_box({whole, 10}, options), (Box{left, 0, 10, 10})) << whole;
    EXPECT_EQ(crop_box({10, whole}, options), (Box{0, left, 10, 10})) << whole;
  }
}

TEST(PreprocessOptions, NameTheFilters) {
  for (const Filter filter :
       {Filter::box, Filter::bilinear, Filter::bicubic, Filter::lanczos, Filter::nearest}) {
    EXPECT_EQ(filter_from_string(to_string(filter)), filter);
  }
  EXPECT_EQ(filter_from_string("hamming"), std::nullopt);
  EXPECT_EQ(to_string(static_cast<Filter>(9)), "unknown");
}

TEST(Preprocess, RefusesWhatCannotBeResized) {
  const PreprocessOptions options;
  EXPECT_SHARD_ERROR(resized_size({0, 5}, options), ErrorCode::invalid_argument, "image of 0x5 pixels");
  EXPECT_SHARD_ERROR(resized_size({1, 178'956'970}, options), ErrorCode::unsupported, "use squash");
  EXPECT_SHARD_ERROR(crop_box({100, 300}, options), ErrorCode::invalid_argument,
                     "larger than the resized image's 100x300");
}

TEST(Preprocess, RefusesASampleOfAnotherSize) {
  Preprocessor preprocessor{PreprocessOptions{}};
  const Pixels pixels = random_picture(5, 5, 0);
  std::vector<std::byte> sample(7);
  EXPECT_SHARD_ERROR(preprocessor.run(view_of(pixels), sample), ErrorCode::invalid_argument,
                     "out has 7 bytes, a sample 301056");
}

}  // namespace
}  // namespace shard::testing
