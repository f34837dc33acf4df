// Every instruction set gives the bits of the plain loops.
#include <gtest/gtest.h>

#include <cstring>

#include "base/system/simd_targets.hpp"
#include "image/preprocess/normalize.hpp"
#include "support/image/preprocess_support.hpp"

namespace shard::testing {
namespace {

using namespace image;

class EveryTarget : public ::testing::Test {
 protected:
  ~EveryTarget() override { use_simd_target(""); }

  // Calls `test` once for each instruction set.
  template <class Test>
  void for_each_target(const Test& test) {
    const auto targets = simd_targets();
    ASSERT_FALSE(targets.empty());
    for (const std::string& target : targets) {
      SCOPED_TRACE(target);
      use_simd_target(target);
      test();
    }
  }
};

std::uint32_t pick(std::mt19937& random, std::uint32_t low, std::uint32_t high) {
  return low + static_cast<std::uint32_t>(random() % (high - low + 1));
}

PreprocessOptions random_options(std::mt19937& random) {
  PreprocessOptions options;
  options.filter = static_cast<Filter>(pick(random, 0, 4));
  options.dtype = DType::u8;
  options.layout = Layout::nhwc;
  options.resize_short = pick(random, 1, 90);
  options.crop = Size{pick(random, 1, options.resize_short), pick(random, 1, options.resize_short)};
  if (pick(random, 0, 1) == 0) {
    options.squash = Size{pick(random, 1, 100), pick(random, 1, 100)};
    options.crop.reset();
  }
  return options;
}

TEST_F(EveryTarget, ResizesAsThePlainLoopsDo) {
  for_each_target([] {
    std::mt19937 random(11);
    for (std::uint32_t i = 0; i < 150; ++i) {
      const PreprocessOptions options = random_options(random);
      const std::uint32_t bound = i % 3 == 0 ? 300 : 40;
      const Pixels source = random_picture(pick(random, 1, bound), pick(random, 1, bound), i);
      const Size resized = resized_size({source.width, source.height}, options);
      const Box box = crop_box(resized, options);
      Preprocessor preprocessor(options);
      const Pixels expected = plain_resize_crop(source, resized, box, options.filter);
      ASSERT_EQ(copy_of(preprocessor.resize_crop(view_of(source))), expected)
          << source.width << "x" << source.height << " to " << resized.width << "x" << resized.height
          << ", box " << box.width << "x" << box.height << "+" << box.left << "+" << box.top << ", "
          << to_string(options.filter);
      std::vector<std::byte> sample(options.sample_spec().size_bytes());
      preprocessor.run(view_of(source), sample);
      ASSERT_EQ(std::memcmp(sample.data(), expected.rgb.data(), sample.size()), 0);
    }
  });
}

TEST_F(EveryTarget, ResizesRowsThatAreWiderThanATile) {
  for_each_target([] {
    for (const Filter filter :
         {Filter::box, Filter::bilinear, Filter::bicubic, Filter::lanczos, Filter::nearest}) {
      for (const Size size : {Size{2001, 3}, Size{5, 1999}, Size{1200, 40}}) {
        PreprocessOptions options;
        options.squash = Size{37, 21};
        options.crop.reset();
        options.filter = filter;
        const Pixels source = random_picture(size.width, size.height, 3);
        Preprocessor preprocessor(options);
        ASSERT_EQ(copy_of(preprocessor.resize_crop(view_of(source))),
                  plain_resize_crop(source, *options.squash, {0, 0, 37, 21}, filter));
      }
    }
  });
}

TEST_F(EveryTarget, ReadsNothingBesideTheImage) {
  // Rows of a larger image: a read outside of the view is seen by the sanitizers, a use of it here.
  for_each_target([] {
    PreprocessOptions options;
    options.squash = Size{20, 20};
    options.crop.reset();
    for (std::uint32_t width = 1; width < 40; ++width) {
      const Pixels source = random_picture(width, 19, width);
      std::vector<std::uint8_t> exact(source.rgb);
      exact.shrink_to_fit();
      Preprocessor preprocessor(options);
      ASSERT_EQ(copy_of(preprocessor.resize_crop({exact.data(), width, 19, std::size_t{width} * 3})),
                plain_resize_crop(source, {20, 20}, {0, 0, 20, 20}, options.filter));
    }
  });
}

TEST_F(EveryTarget, NormalisesToTheSameBits) {
  const Pixels source = random_picture(71, 33, 2);
  for (const DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      PreprocessOptions options;
      options.squash = Size{71, 33};
      options.crop.reset();
      options.dtype = dtype;
      options.layout = layout;
      options.normalization = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
      std::vector<std::vector<std::byte>> samples;
      for_each_target([&] {
        Preprocessor preprocessor(options);
        samples.emplace_back(options.sample_spec().size_bytes());
        preprocessor.run(view_of(source), samples.back());
        EXPECT_EQ(samples.back(), samples.front()) << to_string(dtype) << " " << to_string(layout);
      });
    }
  }
}

TEST_F(EveryTarget, WithFusedMultiplyAddNormalisesByVectors) {
  const Normalization imagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  const Normalization clip{{0.48145466F, 0.4578275F, 0.40821073F}, {0.26862954F, 0.26130258F, 0.27577711F}};
  const Normalization half{{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}};
  for (const std::string& target : simd_targets()) {
    if (target.rfind("AVX", 0) != 0) continue;
    SCOPED_TRACE(target);
    use_simd_target(target);
    for (const Normalization& normalization : {imagenet, clip, half, Normalization{}}) {
      for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
        EXPECT_TRUE(RowWriter(dtype, Layout::nchw, normalization, {8, 8}).uses_kernel()) << to_string(dtype);
      }
    }
  }
}

}  // namespace
}  // namespace shard::testing
