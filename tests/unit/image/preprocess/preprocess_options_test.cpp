// Options are refused with their name and bound; sizes follow torchvision.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "support/expect_error.hpp"
#include "support/image/preprocess_support.hpp"

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
  const auto tiny = [](O& o) {
    o.dtype = DType::f16;
    o.normalization = {{0, 0, 0}, {1, 1e-5F, 1}};
  };
  expect_refused(with(tiny), "`std` of channel 1 is 1e-05: (1 - 0) / 1e-05 is too large for dtype f16");
  fits = with(tiny);
  fits.dtype = DType::bf16;
  fits.check();
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
  EXPECT_SHARD_ERROR(preprocessor.run(view_of(pixels), std::span(sample)), ErrorCode::invalid_argument,
                     "out has 7 bytes, a sample 301056");
  preprocessor.run(view_of(pixels), sample);  // a vector gets the size
  EXPECT_EQ(sample.size(), 301056U);
}

PreprocessOptions free_options(FreeSize::Bound bound, std::uint64_t most, std::uint32_t multiple = 1) {
  PreprocessOptions options;
  options.dtype = DType::u8;
  options.layout = Layout::nhwc;
  options.free_size = FreeSize{bound, most, multiple};
  return options;
}

TEST(FreeSizes, FollowTheirRulesAndNeverGrow) {
  using enum FreeSize::Bound;
  EXPECT_TRUE(free_options(none, 0).sample_spec().is_free());
  const auto size = [](const PreprocessOptions& options, Size source) {
    return resized_size(source, options);
  };
  EXPECT_EQ(size(free_options(none, 0), {6000, 1}), (Size{6000, 1}));
  EXPECT_EQ(size(free_options(longest, 300), {500, 375}), (Size{300, 225}));
  EXPECT_EQ(size(free_options(longest, 300), {375, 500}), (Size{225, 300}));
  EXPECT_EQ(size(free_options(longest, 300), {6000, 1}), (Size{300, 1}));
  EXPECT_EQ(size(free_options(longest, 500), {500, 375}), (Size{500, 375}));
  EXPECT_EQ(size(free_options(shortest, 300), {500, 375}), (Size{400, 300}));
  EXPECT_EQ(size(free_options(shortest, 300), {300, 9000}), (Size{300, 9000}));
  EXPECT_EQ(size(free_options(shortest, 300), {400, 400}), (Size{300, 300}));
  EXPECT_EQ(size(free_options(area, 10'000), {200, 200}), (Size{100, 100}));
  EXPECT_EQ(size(free_options(area, 10'000), {100, 100}), (Size{100, 100}));
  // 65535 x 3, by sqrt(1 / 20): the short side is 1 at least, so the long one has the whole area.
  EXPECT_EQ(size(free_options(area, 1000), {65535, 3}), (Size{1000, 1}));
  for (std::uint32_t width = 1; width < 400; width += 7) {
    for (const std::uint32_t height : {1U, 33U, 199U}) {
      const Size made = size(free_options(area, 5000), {width, height});
      EXPECT_LE(std::uint64_t{made.width} * made.height, 5000U) << width << 'x' << height;
      EXPECT_LE(made.width, width);
      EXPECT_LE(made.height, height);
      EXPECT_GE(std::min(made.width, made.height), 1U);
    }
  }
}

TEST(FreeSizes, MultiplesAreCentreCrops) {
  using enum FreeSize::Bound;
  const PreprocessOptions options = free_options(none, 0, 16);
  EXPECT_EQ(crop_box({50, 37}, options), (Box{1, 2, 48, 32}));
  EXPECT_EQ(crop_box({48, 32}, options), (Box{0, 0, 48, 32}));
  EXPECT_SHARD_ERROR(crop_box({50, 15}, options), ErrorCode::unsupported, "each side must have at least 16");
  EXPECT_SHARD_ERROR(crop_box({65536, 15}, free_options(none, 0)), ErrorCode::unsupported,
                     "at most 65535 rows and columns");
}

TEST(FreeSizes, BadBoundsAreNamed) {
  using enum FreeSize::Bound;
  const auto refused = [](const PreprocessOptions& options, const char* why) {
    EXPECT_SHARD_ERROR(Preprocessor{options}, ErrorCode::invalid_argument, why);
  };
  refused(free_options(longest, 0), "`longest` is 0");
  refused(free_options(longest, 65536), "`longest` is 65536");
  refused(free_options(shortest, 9, 16), "`shortest` is 9: give a number from `multiple`, here 16");
  refused(free_options(area, 255, 16), "`area` is 255 pixels");
  refused(free_options(area, (std::uint64_t{1} << 32U) + 1), "`area` is");
  refused(free_options(none, 0, 0), "`multiple` is 0");
  refused(free_options(none, 0, 4097), "`multiple` is 4097");
  PreprocessOptions both = free_options(none, 0);
  both.squash = Size{5, 5};
  refused(both, "`squash`");
  std::vector<std::byte> sample(7);
  Preprocessor preprocessor(free_options(none, 0));
  EXPECT_SHARD_ERROR(preprocessor.run(view_of(random_picture(5, 5, 0)), std::span(sample)),
                     ErrorCode::invalid_argument, "give a vector");
}

// One preprocessor for images of many sizes: nothing of one is left in the next.
TEST(FreeSizes, AReusedPreprocessorGivesWhatAFreshOneGives) {
  for (const auto& [dtype, layout] :
       {std::pair(DType::u8, Layout::nhwc), std::pair(DType::u8, Layout::nchw),
        std::pair(DType::f16, Layout::nchw), std::pair(DType::f32, Layout::nhwc)}) {
    PreprocessOptions options = free_options(FreeSize::Bound::longest, 40);
    options.dtype = dtype;
    options.layout = layout;
    Preprocessor reused(options);
    std::vector<std::byte> sample;
    for (const auto& [width, height] : {std::pair(70U, 9U), std::pair(5U, 5U), std::pair(30U, 77U),
                                        std::pair(1U, 1U), std::pair(40U, 40U)}) {
      const Pixels picture = random_picture(width, height, width);
      reused.run(view_of(picture), sample);
      std::vector<std::byte> fresh;
      Preprocessor once(options);
      once.run(view_of(picture), fresh);
      EXPECT_EQ(sample, fresh) << width << 'x' << height;
      EXPECT_EQ(reused.made(), once.made());
      EXPECT_EQ(sample.size(), reused.made().size_bytes());
      const Size size = resized_size({width, height}, options);
      if (dtype != DType::u8 || layout != Layout::nhwc) continue;
      const Pixels plain = plain_resize_crop(picture, size, {0, 0, size.width, size.height}, options.filter);
      EXPECT_EQ(std::memcmp(sample.data(), plain.rgb.data(), sample.size()), 0) << width << 'x' << height;
    }
  }
}

}  // namespace
}  // namespace shard::testing
