// Each instruction against a plain reference, for every instruction set of this CPU.
// tests/golden/check_augment_with_torchvision.py compares the same with torchvision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/system/simd_targets.hpp"
#include "shard/loader/augment.hpp"
#include "support/transform/augment_support.hpp"
#include "support/transform/random_program.hpp"
#include "transform/augment/pixel_math.hpp"

namespace shard {
namespace {

using testing::drawn;
using testing::kColor;
using testing::noise;
using testing::Pixels;
using testing::Random;
using testing::run;

float real(std::uint8_t v) { return static_cast<float>(v); }
float cut(float v) { return std::floor(std::clamp(v, 0.0F, 255.0F)); }
float gray(const std::uint8_t* p) {
  return std::floor(std::fma(real(p[2]), 0.114F, std::fma(real(p[1]), 0.587F, real(p[0]) * 0.2989F)));
}

class EachSet : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_simd_target(GetParam()); }
  void TearDown() override { use_simd_target(""); }
};
INSTANTIATE_TEST_SUITE_P(Interpreter, EachSet, ::testing::ValuesIn(simd_targets()),
                         [](const auto& set) { return set.param; });

TEST_P(EachSet, TablesAreTheirFormulas) {
  const Pixels in = noise(kColor);
  for (const float factor : {0.0F, 0.1F, 0.77F, 1.3F, 2.0F, 9.5F}) {
    const Pixels bright = run(kColor, {Opcode::brightness, {}, {factor}}, in);
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(bright[i], cut(real(in[i]) * factor)) << factor;
  }
  for (const float threshold : {0.0F, 1.0F, 127.5F, 255.0F}) {
    const Pixels got = run(kColor, {Opcode::solarize, {}, {threshold}}, in);
    for (std::size_t i = 0; i < in.size(); ++i)
      ASSERT_EQ(got[i], real(in[i]) >= threshold ? 255 - in[i] : in[i]);
  }
  const Pixels posterized = run(kColor, {Opcode::posterize, {0xE0}}, in);
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(posterized[i], in[i] & 0xE0);
}

TEST_P(EachSet, SeveralTablesAreAppliedInTheirOrder) {
  const Pixels in = noise(kColor);
  const Instruction invert{Opcode::invert};
  const Instruction solarize{Opcode::solarize, {}, {100}};
  const Instruction equalize{Opcode::equalize};
  const Instruction contrast{Opcode::contrast, {}, {1.5F, -0.5F}};
  EXPECT_EQ(
      run(kColor, {invert, solarize, contrast, equalize, invert}, in),
      run(kColor, invert,
          run(kColor, equalize, run(kColor, contrast, run(kColor, solarize, run(kColor, invert, in))))));
}

TEST_P(EachSet, BlendsAreTheirFormulas) {
  const Pixels in = noise(kColor);
  double sum = 0;
  for (std::size_t i = 0; i < in.size(); i += 3) sum += double{gray(&in[i])};
  const float mean = static_cast<float>(sum) / static_cast<float>(in.size() / 3);
  for (const float factor : {0.0F, 0.3F, 0.9F, 1.7F}) {
    const auto rest = static_cast<float>(1.0 - double{factor});
    const Pixels contrast = run(kColor, {Opcode::contrast, {}, {factor, rest}}, in);
    const Pixels saturation = run(kColor, {Opcode::saturation, {}, {factor, rest}}, in);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const float value = real(in[i]) * factor;
      ASSERT_EQ(contrast[i], cut(std::fma(mean, rest, value))) << i;
      ASSERT_EQ(saturation[i], cut(std::fma(gray(&in[i / 3 * 3]), rest, value))) << i;
    }
  }
  const Pixels grayscale = run(kColor, Instruction{Opcode::grayscale}, in);
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(grayscale[i], gray(&in[i / 3 * 3]));
}

// In double: hue in turns, with what is left of float32's rounding.
TEST_P(EachSet, HueTurnsTheColorCircle) {
  const Pixels in = noise(kColor);
  for (const float shift : {-0.5F, -0.17F, 0.0F, 0.05F, 1.0F / 3, 0.5F}) {
    const Pixels got = run(kColor, {Opcode::hue, {}, {shift}}, in);
    for (std::size_t i = 0; i < in.size(); i += 3) {
      const double high = *std::max_element(&in[i], &in[i] + 3);
      const double low = *std::min_element(&in[i], &in[i] + 3);
      double hue = 0;
      if (high > low) {
        if (in[i] == high)
          hue = (in[i + 1] - in[i + 2]) / (high - low) / 6;
        else if (in[i + 1] == high)
          hue = (in[i + 2] - in[i]) / (high - low) / 6 + 1.0 / 3;
        else
          hue = (in[i] - in[i + 1]) / (high - low) / 6 + 2.0 / 3;
      }
      hue += double{shift} + 1;
      for (int c = 0; c < 3; ++c) {
        // The share of a channel falls linearly from 1 at its own hue, over a sixth, 60 degrees from it.
        double away = std::abs(std::remainder(hue - c / 3.0, 1.0)) * 6;
        away = std::clamp(away - 1, 0.0, 1.0);
        const double expected = (high - (high - low) * away) / 255 * 255.999;
        ASSERT_NEAR(got[i + static_cast<std::size_t>(c)], std::floor(expected + 1e-4),
                    expected - std::floor(expected) < 1e-3 || expected - std::floor(expected) > 0.999 ? 1 : 0)
            << shift << " " << i;
      }
    }
  }
}

// The arithmetic that the GPU uses is written once, for one pixel; the host's vectors must give its bits.
TEST_P(EachSet, HueHasTheBitsOfOnePixelAtATime) {
  constexpr std::uint32_t kColors = 1U << 24U;
  constexpr std::uint32_t kStep = 101;  // prime to kColors: each value of each channel, in any order
  const SampleSpec spec{DType::u8, Layout::nhwc, 3, 1, kColors / kStep};
  Pixels in(spec.elements());
  for (std::uint32_t i = 0; i < spec.width; ++i)
    for (std::uint32_t c = 0; c < 3; ++c) in[3 * i + c] = static_cast<std::uint8_t>((i * kStep) >> (8 * c));
  for (const float shift : {-0.5F, -0.031F, 0.0F, 0.1F, 0.4999F}) {
    const Pixels got = run(spec, {Opcode::hue, {}, {shift}}, in);
    for (std::size_t i = 0; i < in.size(); i += 3) {
      const augment::Rgb one = augment::hue_shifted(real(in[i]), real(in[i + 1]), real(in[i + 2]), shift);
      ASSERT_TRUE(got[i] == one.r && got[i + 1] == one.g && got[i + 2] == one.b)
          << shift << " " << int{in[i]} << " " << int{in[i + 1]} << " " << int{in[i + 2]};
    }
  }
}

TEST_P(EachSet, StatisticsAreThoseOfTheChannel) {
  Pixels in = noise(kColor);
  for (std::size_t i = 0; i < in.size(); i += 3) in[i] = static_cast<std::uint8_t>(20 + in[i] / 2);
  const Pixels stretched = run(kColor, drawn(kColor, {ops::AutoContrast{}}), in);
  const Pixels equalized = run(kColor, drawn(kColor, {ops::Equalize{}}), in);
  for (std::size_t c = 0; c < 3; ++c) {
    std::vector<int> counts(256);
    for (std::size_t i = c; i < in.size(); i += 3) ++counts[in[i]];
    int low = 0;
    int high = 255;
    while (counts[static_cast<std::size_t>(low)] == 0) ++low;
    while (counts[static_cast<std::size_t>(high)] == 0) --high;
    const int step = (static_cast<int>(in.size() / 3) - counts[static_cast<std::size_t>(high)]) / 255;
    ASSERT_GT(step, 0);
    for (std::size_t i = c; i < in.size(); i += 3) {
      ASSERT_NEAR(stretched[i], (in[i] - low) * 255.0 / (high - low), 1);
      const int below = std::accumulate(counts.begin(), counts.begin() + in[i], 0);
      ASSERT_EQ(equalized[i], in[i] == 0 ? 0 : std::min(255, (below + step / 2) / step));
    }
  }
  const Pixels flat(kColor.elements(), 9);
  EXPECT_EQ(run(kColor, Instruction{Opcode::equalize}, flat), flat);
  EXPECT_EQ(run(kColor, Instruction{Opcode::autocontrast}, flat), flat);
}

std::size_t at(const SampleSpec& spec, int y, int x, std::uint32_t c) {
  return (static_cast<std::size_t>(y) * spec.width + static_cast<std::size_t>(x)) * spec.channels + c;
}

TEST_P(EachSet, NeighboursAreWeighed) {
  for (const std::uint32_t channels : {1U, 2U, 3U, 5U}) {
    const SampleSpec spec{DType::u8, Layout::nhwc, channels, 21, 34};
    const Pixels in = noise(spec, channels);
    for (const std::uint32_t size : {1U, 3U, 9U, 31U}) {
      const auto program = drawn(spec, {ops::GaussianBlur{size, {1.7, 1.7}}});
      const Pixels got = run(spec, program, in);
      const int radius = static_cast<int>(size / 2);
      const auto mirror = [](int i, int n) { return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; };
      for (int y = 0; y < 21; ++y)
        for (int x = 0; x < 34; ++x)
          for (std::uint32_t c = 0; c < channels; ++c) {
            double sum = 0;
            double weights = 0;
            for (int dy = -radius; dy <= radius; ++dy)
              for (int dx = -radius; dx <= radius; ++dx) {
                const double w = std::exp(-(dx * dx + dy * dy) / (2 * 1.7 * 1.7));
                sum += w * in[at(spec, mirror(y + dy, 21), mirror(x + dx, 34), c)];
                weights += w;
              }
            const double value = sum / weights;
            const bool tie = std::abs(value - std::floor(value) - 0.5) < 1e-3;
            ASSERT_NEAR(got[at(spec, y, x, c)], tie ? value : std::round(value), tie ? 0.51 : 0)
                << size << " " << y << " " << x;
          }
    }
  }
  const Pixels in = noise(kColor);
  const Pixels sharp = run(kColor, {Opcode::sharpness, {}, {-1}}, in);
  for (int y = 0; y < 37; ++y)
    for (int x = 0; x < 53; ++x)
      for (std::uint32_t c = 0; c < 3; ++c) {
        double expected = in[at(kColor, y, x, c)];
        if (y > 0 && x > 0 && y < 36 && x < 52) {
          double sum = 4 * expected;
          for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) sum += in[at(kColor, y + dy, x + dx, c)];
          expected = std::clamp(2 * expected - std::round(sum / 13), 0.0, 255.0);
        }
        ASSERT_EQ(sharp[at(kColor, y, x, c)], expected) << y << " " << x;
      }
}

// Of padded samples and patches: a kernel or a shift that is wider than the sample goes back and forth.
TEST_P(EachSet, TinySamplesAreMirroredAgainAndAgain) {
  const auto mirror = [](int i, std::uint32_t n) {
    const int last = static_cast<int>(n) - 1;
    while (last > 0 && (i < 0 || i > last)) i = i < 0 ? -i : 2 * last - i;
    return last == 0 ? 0 : i;
  };
  for (const SampleSize& size :
       {SampleSize{1, 1}, SampleSize{1, 5}, SampleSize{2, 3}, SampleSize{4, 1}, SampleSize{3, 40}}) {
    const SampleSpec spec{DType::u8, Layout::nhwc, 3, size.height, size.width};
    const Pixels in = noise(spec, size.width);
    std::vector<Instruction> program;
    draw_program(spec, {ops::GaussianBlur{31, {9, 9}}}, 0, 0, 0, 0, program);
    const Pixels blurred = run(spec, program, in);
    const Pixels moved = run(spec, {Opcode::shift, {-7, 11, 1}}, in);
    for (int y = 0; y < static_cast<int>(size.height); ++y)
      for (int x = 0; x < static_cast<int>(size.width); ++x)
        for (std::uint32_t c = 0; c < 3; ++c) {
          double sum = 0;
          double weights = 0;
          for (int dy = -15; dy <= 15; ++dy)
            for (int dx = -15; dx <= 15; ++dx) {
              const double w = std::exp(-(dx * dx + dy * dy) / (2 * 9.0 * 9.0));
              sum += w * in[at(spec, mirror(y + dy, size.height), mirror(x + dx, size.width), c)];
              weights += w;
            }
          ASSERT_NEAR(blurred[at(spec, y, x, c)], sum / weights, 0.51) << size.height << " x " << size.width;
          ASSERT_EQ(moved[at(spec, y, x, c)],
                    in[at(spec, mirror(y + 7, size.height), mirror(x - 11, size.width), c)]);
        }
  }
}

TEST_P(EachSet, EveryProgramGivesTheBytesOfTheFirstSet) {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    const SampleSpec spec{DType::u8, Layout::nhwc, random.one_of({1U, 3U, 3U, 3U, 4U, 6U}),
                          random.between(16, 70), random.between(16, 70)};
    const auto program =
        drawn(spec, testing::random_operations(random, spec, 6), static_cast<std::uint64_t>(round));
    const Pixels in = noise(spec, static_cast<std::uint64_t>(round));
    const Pixels got = run(spec, program, in);
    use_simd_target(simd_targets().back());
    ASSERT_EQ(got, run(spec, program, in)) << round;
    use_simd_target(GetParam());
  }
}

TEST(Interpreter, PixelsMoveAsTheOperationSays) {
  const SampleSpec spec{DType::u8, Layout::nhwc, 3, 40, 40};
  const Pixels in = noise(spec);
  const Pixels flipped = run(spec, drawn(spec, {ops::VerticalFlip{1}}), in);
  const Pixels turned = run(spec, drawn(spec, {ops::Turns{1}}), in);
  const Pixels rotated = run(spec, drawn(spec, {ops::Rotation{{90, 90}}}), in);
  const Pixels moved = run(spec, {Opcode::shift, {3, -5}, {1, 2, 3}}, in);
  const Pixels mirrored = run(spec, {Opcode::shift, {3, -5, 1}}, in);
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 40; ++x)
      for (std::uint32_t c = 0; c < 3; ++c) {
        ASSERT_EQ(flipped[at(spec, y, x, c)], in[at(spec, 39 - y, x, c)]);
        ASSERT_EQ(turned[at(spec, y, x, c)], in[at(spec, x, 39 - y, c)]);
        const bool inside = y >= 3 && x + 5 < 40;
        ASSERT_EQ(moved[at(spec, y, x, c)], inside ? in[at(spec, y - 3, x + 5, c)] : c + 1);
        ASSERT_EQ(mirrored[at(spec, y, x, c)],
                  in[at(spec, std::abs(y - 3), x + 5 < 40 ? x + 5 : 78 - x - 5, c)]);
      }
  EXPECT_EQ(turned, rotated);
  EXPECT_EQ(run(spec, drawn(spec, {ops::Affine{}}), in), in);
  EXPECT_EQ(run(spec, drawn(spec, {ops::Affine{.interpolation = Interpolation::bilinear}}), in), in);
  EXPECT_EQ(run(spec, drawn(spec, {ops::Rotation{{720, 720}}}), in), in);
}

TEST(Interpreter, ErasingFillsItsRectangleOnly) {
  const Pixels in = noise(kColor);
  const Pixels filled = run(kColor, {Opcode::erase, {5, 7, 10, 20}, {1, 2, 3}}, in);
  const Pixels noisy = run(kColor, {Opcode::erase_noise, {5, 7, 10, 20, 1, 2}}, in);
  int same = 0;
  for (int y = 0; y < 37; ++y)
    for (int x = 0; x < 53; ++x)
      for (std::uint32_t c = 0; c < 3; ++c) {
        const std::size_t i = at(kColor, y, x, c);
        const bool inside = y >= 5 && y < 15 && x >= 7 && x < 27;
        ASSERT_EQ(filled[i], inside ? c + 1 : in[i]);
        if (inside)
          same += noisy[i] == in[i] ? 1 : 0;
        else
          ASSERT_EQ(noisy[i], in[i]);
      }
  EXPECT_LT(same, 600 / 30);
}

TEST(Interpreter, AugMixOfNothingIsTheSample) {
  const Pixels in = noise(kColor);
  const std::vector<Instruction> program{
      {Opcode::keep},    {Opcode::mix_set, {}, {0.25F}}, {Opcode::invert},
      {Opcode::restore}, {Opcode::mix_add, {}, {0.75F}}, {Opcode::mix_end}};
  EXPECT_EQ(run(kColor, program, in), in);
}

// Shares of small alpha are nearly all 0 and 1: gamma variables so small that they underflow must not become
// 0 / 0.
TEST(Interpreter, AugMixOfSmallAlphaHasSharesThatAddUp) {
  for (const double alpha : {0.001, 0.003, 1.0}) {
    ops::AugMix policy;
    policy.alpha = alpha;
    std::vector<Instruction> program;
    std::size_t nearly_one = 0;
    std::size_t programs = 0;
    for (std::uint64_t sample = 0; sample < 500; ++sample) {
      program.clear();
      draw_program(kColor, {policy}, 3, 0, sample, 0, program);
      double sum = 0;
      float most = 0;
      for (const Instruction& one : program) {
        if (one.opcode != Opcode::mix_set && one.opcode != Opcode::mix_add) continue;
        ASSERT_TRUE(one.real[0] >= 0 && one.real[0] <= 1) << alpha << ", sample " << sample;
        sum += one.real[0];
        most = std::max(most, one.real[0]);
      }
      if (program.empty()) continue;
      ++programs;
      ASSERT_NEAR(sum, 1, 1e-5) << alpha << ", sample " << sample;
      nearly_one += most > 0.99F ? 1 : 0;
    }
    ASSERT_GT(programs, 400U);
    EXPECT_EQ(nearly_one > programs * 95 / 100, alpha < 1) << alpha << ": " << nearly_one;
  }
}

}  // namespace
}  // namespace shard
