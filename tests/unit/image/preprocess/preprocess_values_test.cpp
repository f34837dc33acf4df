// Samples hold (byte / 255 - mean) / std in float32, rounded once to the stored type, where the layout says.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "support/expect_error.hpp"
#include "support/image/preprocess_support.hpp"

namespace shard::testing {
namespace {

using namespace image;

// All bytes in all channels, kept as they are by a resize to the same size.
Pixels all_bytes() {
  Pixels pixels{16, 16, {}};
  for (unsigned i = 0; i < 256; ++i) {
    for (const unsigned step : {1U, 3U, 255U})
      pixels.rgb.push_back(static_cast<std::uint8_t>(i * step + step));
  }
  return pixels;
}

PreprocessOptions as_is(DType dtype, Layout layout, const Normalization& normalization,
                        Size size = {16, 16}) {
  PreprocessOptions options;
  options.squash = size;
  options.crop.reset();
  options.dtype = dtype;
  options.layout = layout;
  options.normalization = normalization;
  return options;
}

std::vector<std::byte> run(const PreprocessOptions& options, const Pixels& pixels) {
  Preprocessor preprocessor(options);
  std::vector<std::byte> sample(options.sample_spec().size_bytes());
  preprocessor.run(view_of(pixels), sample);
  return sample;
}

std::size_t place(const SampleSpec& spec, std::size_t pixel, std::size_t channel) {
  return spec.layout == Layout::nhwc ? pixel * 3 + channel
                                     : channel * std::size_t{spec.width} * spec.height + pixel;
}

template <class Element>
Element element(const std::vector<std::byte>& sample, std::size_t index) {
  Element value;
  std::memcpy(&value, sample.data() + index * sizeof value, sizeof value);
  return value;
}

float expected_value(std::uint8_t byte, const Normalization& normalization, std::size_t channel) {
  const volatile float scaled = static_cast<float>(byte) / 255.0F;  // each step rounds
  const volatile float centered = scaled - normalization.mean[channel];
  return centered / normalization.std[channel];
}

// Distance of a value from what an exact rounding would give is at most that of its neighbours; ties go to
// even bits.
template <class Widen>
void expect_nearest(std::uint16_t bits, float value, const Widen& widen) {
  const double distance = std::abs(static_cast<double>(widen(bits)) - value);
  for (const int step : {-1, 1}) {
    const auto neighbour = static_cast<std::uint16_t>(bits + step);
    if (!std::isfinite(widen(neighbour)) || std::signbit(widen(neighbour)) != std::signbit(widen(bits)))
      continue;
    const double other = std::abs(static_cast<double>(widen(neighbour)) - value);
    EXPECT_LE(distance, other) << value;
    EXPECT_TRUE(distance < other || bits % 2 == 0) << value;
  }
}

const std::vector<Normalization>& normalizations() {
  static const std::vector<Normalization> all{
      {},
      {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}},
      {{0.48145466F, 0.4578275F, 0.40821073F}, {0.26862954F, 0.26130258F, 0.27577711F}},
      {{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}},
      {{0.1F, -0.75F, 1e-6F}, {1e-3F, -7.0F, 9.678F}}};
  return all;
}

TEST(PreprocessValues, AreTheFormulaInFloat32ForEveryByte) {
  const Pixels pixels = all_bytes();
  for (const Normalization& normalization : normalizations()) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      const auto options = as_is(DType::f32, layout, normalization);
      const auto sample = run(options, pixels);
      for (std::size_t i = 0; i < pixels.rgb.size(); ++i) {
        const float value = element<float>(sample, place(options.sample_spec(), i / 3, i % 3));
        ASSERT_EQ(value, expected_value(pixels.rgb[i], normalization, i % 3)) << int{pixels.rgb[i]};
      }
    }
  }
}

TEST(PreprocessValues, AreRoundedOnceToHalfPrecision) {
  const Pixels pixels = all_bytes();
  for (const Normalization& normalization : normalizations()) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
        const auto options = as_is(dtype, layout, normalization);
        const auto sample = run(options, pixels);
        for (std::size_t i = 0; i < pixels.rgb.size(); ++i) {
          const auto bits = element<std::uint16_t>(sample, place(options.sample_spec(), i / 3, i % 3));
          const float value = expected_value(pixels.rgb[i], normalization, i % 3);
          expect_nearest(bits, value, dtype == DType::f16 ? f16_to_f32 : bf16_to_f32);
          ASSERT_EQ(bits, dtype == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value)) << value;
        }
      }
    }
  }
}

TEST(PreprocessValues, OfBytesAreTheBytesInTheLayoutAsked) {
  for (const std::uint32_t width : {1U, 16U, 31U, 33U, 65U}) {
    const Pixels pixels = random_picture(width, 7, width);
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      const auto options = as_is(DType::u8, layout, normalizations()[1], {width, 7});
      const auto sample = run(options, pixels);
      for (std::size_t i = 0; i < pixels.rgb.size(); ++i) {
        ASSERT_EQ(std::to_integer<int>(sample[place(options.sample_spec(), i / 3, i % 3)]), pixels.rgb[i]);
      }
    }
  }
}

TEST(PreprocessValues, OfRowsThatNoVectorDividesAreTheSame) {
  const Normalization& normalization = normalizations()[1];
  for (std::uint32_t width = 1; width < 70; ++width) {
    const Pixels pixels = random_picture(width, 3, width);
    const auto options = as_is(DType::f16, Layout::nchw, normalization, {width, 3});
    const auto sample = run(options, pixels);
    for (std::size_t i = 0; i < pixels.rgb.size(); ++i) {
      ASSERT_EQ(element<std::uint16_t>(sample, place(options.sample_spec(), i / 3, i % 3)),
                f32_to_f16(expected_value(pixels.rgb[i], normalization, i % 3)));
    }
  }
}

// One row of float32 values as samples of one channel.
std::vector<std::byte> run_floats(const std::vector<float>& values, DType dtype) {
  const auto width = static_cast<std::uint32_t>(values.size());
  PreprocessOptions options = as_is(dtype, Layout::nhwc, {}, {width, 1});
  options.channels = 1;
  Preprocessor preprocessor(options);
  std::vector<std::byte> sample(options.sample_spec().size_bytes());
  preprocessor.run(WideView{reinterpret_cast<const std::byte*>(values.data()), DType::f32, 1, width, 1},
                   std::span(sample));
  return sample;
}

TEST(PreprocessValues, FiniteFloatsNeverBecomeInfinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kMost = std::numeric_limits<float>::max();
  EXPECT_SHARD_ERROR(
      run_floats({1, -70000}, DType::f16), ErrorCode::unsupported,
      "the value -70000 at row 0, column 1 of its sample is too large for dtype f16: dtype f32 "
      "keeps it");
  EXPECT_SHARD_ERROR(run_floats({kMost}, DType::bf16), ErrorCode::unsupported, "too large for dtype bf16");
  EXPECT_EQ(element<float>(run_floats({kMost}, DType::f32), 0), kMost);
  EXPECT_EQ(f16_to_f32(element<std::uint16_t>(run_floats({65504, 1}, DType::f16), 0)), 65504);
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    const auto sample = run_floats({kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}, dtype);
    const auto value = [&](std::size_t i) {
      return value_of_bits(
          dtype, dtype == DType::f32 ? element<std::uint32_t>(sample, i) : element<std::uint16_t>(sample, i));
    };
    EXPECT_EQ(value(0), kInfinity);
    EXPECT_EQ(value(1), -kInfinity);
    EXPECT_TRUE(std::isnan(value(2)));
  }
}

}  // namespace
}  // namespace shard::testing
