// The integer arithmetic of the resize against plain double precision, and against what Pillow computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "support/transform/random_work.hpp"
#include "support/transform/reference_transform.hpp"
#include "transform/arithmetic.hpp"

namespace shard {
namespace {

using testing::Random;

struct ExactTaps {
  int first = 0;
  std::vector<double> weights;  // sum 1
};

// Pillow's precompute_coeffs for the triangle filter, without its fixed point.
ExactTaps exact_taps(std::uint32_t box, std::uint32_t out, std::uint32_t x) {
  const double scale = static_cast<double>(box) / out;
  const double support = std::max(scale, 1.0);
  const double center = (x + 0.5) * scale;
  ExactTaps taps;
  taps.first = std::max(0, static_cast<int>(center - support + 0.5));
  const int end = std::min(static_cast<int>(box), static_cast<int>(center + support + 0.5));
  double total = 0;
  for (int i = taps.first; i < end; ++i) {
    taps.weights.push_back(std::max(0.0, 1.0 - std::abs(i + 0.5 - center) / support));
    total += taps.weights.back();
  }
  for (double& weight : taps.weights) weight /= total;
  return taps;
}

TEST(TransformArithmetic, HasPillowsTaps) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t out = random.between(1, round % 10 == 0 ? kMaxResized : 300);
    const std::uint32_t box =
        random.between(1, std::min(65535U, round % 3 == 0 ? kMaxShrink * out : 2 * out));
    for (int draw = 0; draw < 20; ++draw) {
      const std::uint32_t x = random.between(0, out - 1);
      const Taps taps = taps_of(static_cast<int>(box), static_cast<int>(out), static_cast<int>(x));
      ASSERT_GE(taps.count, 1U);
      ASSERT_LE(taps.count, kMaxTaps);
      ASSERT_LE(taps.first + taps.count, box);
      std::vector<std::int16_t> weights(taps.count);
      tap_weights(static_cast<int>(box), static_cast<int>(out), static_cast<int>(x), taps, weights.data(), 1);
      const ExactTaps exact = exact_taps(box, out, x);
      std::int32_t sum = 0;
      int changed = 0;
      // Pixels that only one of both sees have weight 0 (or nearly, by the rounding of doubles).
      for (std::int32_t i = 0; i < static_cast<std::int32_t>(taps.count); ++i) {
        const std::int32_t k = i + static_cast<std::int32_t>(taps.first) - exact.first;
        const bool seen = k >= 0 && k < static_cast<std::int32_t>(exact.weights.size());
        const double wanted = seen ? exact.weights[static_cast<std::size_t>(k)] * kWeightOne : 0;
        const std::int16_t weight = weights[static_cast<std::size_t>(i)];
        sum += weight;
        ASSERT_GE(weight, 0);
        // Half a unit of rounding; one also takes what is missing.
        if (std::abs(weight - wanted) > 0.5 + 1e-6) ++changed;
        ASSERT_NEAR(weight, wanted, 0.5 * taps.count + 0.5) << box << " -> " << out << " at " << x;
      }
      ASSERT_LE(changed, 1) << box << " -> " << out << " at " << x;
      ASSERT_EQ(sum, static_cast<std::int32_t>(kWeightOne)) << box << " -> " << out << " at " << x;
    }
  }
}

TEST(TransformArithmetic, KeepsPixelsWhenNothingIsResized) {
  for (std::int32_t x = 0; x < 7; ++x) {
    const Taps taps = taps_of(7, 7, x);
    EXPECT_EQ(taps.first, static_cast<std::uint32_t>(x));
    EXPECT_EQ(taps.count, 1U);
  }
  for (std::int32_t byte = 0; byte < 256; ++byte)
    EXPECT_EQ(sum_to_byte(tap_term(tap_value(static_cast<std::uint8_t>(byte)), kWeightOne)), byte);
}

TEST(TransformArithmetic, KeepsBlackAndWhite) {
  for (std::int32_t box = 1; box <= 640; ++box) {
    for (std::int32_t x = 0; x < 20; ++x) {
      const Taps taps = taps_of(box, 20, x);
      std::int16_t weights[kMaxTaps] = {};
      tap_weights(box, 20, x, taps, weights, 1);
      for (std::uint8_t byte : {std::uint8_t{0}, std::uint8_t{255}}) {
        std::int32_t column = 0;
        for (std::uint32_t k = 0; k < taps.count; ++k) column += tap_term(tap_value(byte), weights[k]);
        std::int32_t row = 0;
        for (std::uint32_t k = 0; k < taps.count; ++k) row += tap_term(sum_to_value(column), weights[k]);
        ASSERT_EQ(sum_to_byte(row), byte) << box;
      }
    }
  }
}

// Pillow's two passes, rounded to bytes between them, in double precision.
std::vector<std::uint8_t> pillow_resize(const std::vector<std::uint8_t>& in, std::uint32_t height,
                                        std::uint32_t width, std::uint32_t out_height,
                                        std::uint32_t out_width) {
  const auto rounded = [](double value) {
    return static_cast<std::uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
  };
  std::vector<std::uint8_t> columns(std::size_t{height} * out_width);
  for (std::uint32_t x = 0; x < out_width; ++x) {
    const ExactTaps taps = exact_taps(width, out_width, x);
    for (std::uint32_t y = 0; y < height; ++y) {
      double sum = 0;
      for (std::size_t k = 0; k < taps.weights.size(); ++k)
        sum += taps.weights[k] * in[std::size_t{y} * width + static_cast<std::size_t>(taps.first) + k];
      columns[std::size_t{y} * out_width + x] = rounded(sum);
    }
  }
  std::vector<std::uint8_t> rows(std::size_t{out_height} * out_width);
  for (std::uint32_t y = 0; y < out_height; ++y) {
    const ExactTaps taps = exact_taps(height, out_height, y);
    for (std::uint32_t x = 0; x < out_width; ++x) {
      double sum = 0;
      for (std::size_t k = 0; k < taps.weights.size(); ++k)
        sum += taps.weights[k] * columns[(static_cast<std::size_t>(taps.first) + k) * out_width + x];
      rows[std::size_t{y} * out_width + x] = rounded(sum);
    }
  }
  return rows;
}

TEST(TransformArithmetic, DiffersFromPillowByOneLevelAtMost) {
  Random random(12);
  std::size_t pixels = 0;
  std::size_t different = 0;
  for (int round = 0; round < 40; ++round) {
    SampleSpec stored{DType::u8, Layout::nhwc, 1, random.between(1, 300), random.between(1, 300)};
    SampleSpec delivered = stored;
    delivered.height = random.between((stored.height + 31) / 32, 224);
    delivered.width = random.between((stored.width + 31) / 32, 224);
    std::vector<std::byte> sample(stored.size_bytes());
    random.fill(sample);
    // Noise, and smooth pictures with hard edges.
    if (round % 2 == 0)
      for (std::size_t i = 0; i < sample.size(); ++i)
        sample[i] =
            static_cast<std::byte>(i % stored.width < stored.width / 3 ? 255 : i / stored.width % 256);
    const std::byte* source = sample.data();
    const SampleCrop crop{0, 0, stored.width, stored.height, false};
    TransformWork work{stored, delivered, {}, false, {&source, 1}, {&crop, 1}, nullptr};
    const std::vector<std::uint8_t> got = testing::reference_resize(work, 0, 0);
    std::vector<std::uint8_t> bytes(sample.size());
    std::transform(sample.begin(), sample.end(), bytes.begin(),
                   [](std::byte b) { return static_cast<std::uint8_t>(b); });
    const std::vector<std::uint8_t> wanted =
        pillow_resize(bytes, stored.height, stored.width, delivered.height, delivered.width);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_LE(std::abs(int{got[i]} - int{wanted[i]}), 1)
          << stored.height << "x" << stored.width << " -> " << delivered.height << "x" << delivered.width;
      different += got[i] != wanted[i] ? 1 : 0;
    }
    pixels += got.size();
  }
  EXPECT_LT(different, pixels / 4);  // Pillow rounds between the passes
  RecordProperty("different_percent", static_cast<int>(100 * different / pixels));
}

}  // namespace
}  // namespace shard
