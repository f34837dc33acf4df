// What is drawn of operations and policies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "support/transform/augment_support.hpp"

namespace shard {
namespace {

using testing::drawn;
using testing::kColor;
using testing::noise;
using testing::Pixels;
using testing::run;

TEST(DrawnProgram, DependsOnItsKeyOnly) {
  const std::vector<Operation> jitter{
      ops::ColorJitter{Range{0.5, 1.5}, Range{0.5, 1.5}, Range{0.5, 1.5}, Range{-0.1, 0.1}}};
  const auto base = drawn(kColor, jitter, 5, 1, 2, 0);
  EXPECT_EQ(base, drawn(kColor, jitter, 5, 1, 2, 0));
  EXPECT_NE(base, drawn(kColor, jitter, 6, 1, 2, 0));
  EXPECT_NE(base, drawn(kColor, jitter, 5, 2, 2, 0));
  EXPECT_NE(base, drawn(kColor, jitter, 5, 1, 3, 0));
  EXPECT_NE(base, drawn(kColor, jitter, 5, 1, 2, 1));
  // Another kind before it changes nothing; a second one of its kind is drawn anew.
  const std::vector<Operation> more{ops::Erasing{.p = 0}, jitter[0], jitter[0]};
  const auto longer = drawn(kColor, more, 5, 1, 2, 0);
  ASSERT_EQ(longer.size(), 2 * base.size());
  EXPECT_TRUE(std::equal(base.begin(), base.end(), longer.begin()));
  EXPECT_FALSE(
      std::equal(base.begin(), base.end(), longer.begin() + static_cast<std::ptrdiff_t>(base.size())));
}

// Chi-squared of `counts`, which are to be equally frequent; 5 standard deviations above its mean at most.
void expect_uniform(const std::vector<int>& counts) {
  const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  double chi = 0;
  for (const int count : counts) chi += (count - mean) * (count - mean) / mean;
  const auto freedom = static_cast<double>(counts.size() - 1);
  EXPECT_LT(chi, freedom + 5 * std::sqrt(2 * freedom));
  EXPECT_GT(chi, freedom - 5 * std::sqrt(2 * freedom));
}

TEST(DrawnProgram, DrawsAreUniform) {
  std::vector<int> factors(20);
  std::vector<int> orders(24);
  std::vector<int> hues(20);
  std::vector<int> rows(9);
  std::vector<int> turns(4);
  std::vector<int> acts(14);
  int applied = 0;
  constexpr int kSamples = 48000;
  const std::vector<Operation> jitter{
      ops::ColorJitter{Range{0.5, 1.5}, Range{0.5, 1.5}, Range{0.5, 1.5}, Range{-0.5, 0.5}}};
  const SampleSpec square{DType::u8, Layout::nhwc, 3, 64, 64};
  for (int sample = 0; sample < kSamples; ++sample) {
    const auto id = static_cast<std::uint64_t>(sample);
    const auto program = drawn(square, jitter, id);
    ASSERT_EQ(program.size(), 4U);
    std::vector<int> order;
    for (const Instruction& one : program) {
      order.push_back(static_cast<int>(one.opcode));
      if (one.opcode == Opcode::brightness)
        ++factors[static_cast<std::size_t>((one.real[0] - 0.5F) * 19.9999F)];
      if (one.opcode == Opcode::hue) ++hues[static_cast<std::size_t>((one.real[0] + 0.5F) * 19.9999F)];
    }
    int rank = 0;
    for (std::size_t i = 0; i < 4; ++i)
      rank = rank * static_cast<int>(4 - i) +
             static_cast<int>(std::count_if(order.begin() + static_cast<std::ptrdiff_t>(i), order.end(),
                                            [&](int o) { return o < order[i]; }));
    ++orders[static_cast<std::size_t>(rank)];
    const auto moved = drawn(square, {ops::PaddedCrop{4}}, id);
    ++rows[moved.empty() ? 4 : static_cast<std::size_t>(moved[0].whole[0] + 4)];
    const auto turned = drawn(square, {ops::Turns{}}, id);
    ++turns[turned.empty() ? 0 : static_cast<std::size_t>(turned[0].whole[0])];
    applied += drawn(square, {ops::Invert{0.3}}, id).empty() ? 0 : 1;
  }
  expect_uniform(factors);
  expect_uniform(hues);
  expect_uniform(orders);
  expect_uniform(rows);
  expect_uniform(turns);
  EXPECT_NEAR(applied, 0.3 * kSamples, 5 * std::sqrt(0.21 * kSamples));
}

TEST(DrawnProgram, PoliciesHaveTheirOperationsEquallyOften) {
  const SampleSpec square{DType::u8, Layout::nhwc, 3, 64, 64};
  std::vector<int> counts(kOpcodeNames.size() + 1);
  constexpr int kSamples = 28000;
  for (int sample = 0; sample < kSamples; ++sample) {
    const auto program = drawn(square, {ops::RandAugment{1, 9}}, static_cast<std::uint64_t>(sample));
    ASSERT_LE(program.size(), 1U);
    ++counts[program.empty() ? kOpcodeNames.size() : static_cast<std::size_t>(program[0].opcode)];
  }
  std::vector<int> once;
  for (const Opcode opcode : {Opcode::brightness, Opcode::saturation, Opcode::contrast, Opcode::sharpness,
                              Opcode::posterize, Opcode::solarize, Opcode::autocontrast, Opcode::equalize})
    once.push_back(counts[static_cast<std::size_t>(opcode)]);
  once.push_back(counts[kOpcodeNames.size()]);
  expect_uniform(once);
  EXPECT_NEAR(counts[static_cast<std::size_t>(Opcode::affine)], 5 * kSamples / 14.0,
              5 * std::sqrt(kSamples * 0.23));
}

// For each channel of 40, which cross the words of the mask, and with each number of them.
TEST(DrawnProgram, DroppedChannelsAreDrawnEquallyOftenAndTheOthersStay) {
  const SampleSpec spec{DType::u8, Layout::nhwc, 40, 5, 7};
  const Pixels in = noise(spec);
  for (const std::uint32_t count : {1U, 20U, 39U}) {
    constexpr int kSamples = 2000;
    std::vector<int> dropped(spec.channels);
    for (int sample = 0; sample < kSamples; ++sample) {
      const auto program =
          drawn(spec, {ops::ChannelDropout{count, {10, 20, 30, 40}, 1}}, static_cast<std::uint64_t>(sample));
      const Pixels got = run(spec, program, in);
      std::uint32_t found = 0;
      for (std::uint32_t c = 0; c < spec.channels; ++c) {
        const std::uint32_t fill = c < 4 ? 10 * (c + 1) : 10;
        const bool is_dropped = got[c] == fill && got[c + spec.channels] == fill;
        found += is_dropped ? 1 : 0;
        dropped[c] += is_dropped ? 1 : 0;
        for (std::size_t i = c; i < in.size(); i += spec.channels)
          ASSERT_EQ(got[i], is_dropped ? fill : in[i]) << c;
      }
      ASSERT_EQ(found, count);
    }
    expect_uniform(dropped);
  }
  SampleSpec four = kColor;
  four.channels = 4;
  std::vector<int> pairs(16);
  for (std::uint64_t sample = 0; sample < 6000; ++sample)
    ++pairs[static_cast<std::size_t>(drawn(four, {ops::ChannelDropout{2, {}, 1}}, sample)[0].whole[0])];
  expect_uniform({pairs[3], pairs[5], pairs[6], pairs[9], pairs[10], pairs[12]});
}

}  // namespace
}  // namespace shard
