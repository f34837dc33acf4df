// The one normalisation: every byte to bits, and back.
#include "shard/normalization.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>

namespace shard {
namespace {

const Normalization kImageNet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

TEST(NormalizationValue, IsStatedBitForBit) {
  // The bits that numpy computes in float32.
  EXPECT_EQ(std::bit_cast<std::uint32_t>(normalized_value(0, 0.485F, 0.229F)), 0xc007'8bbdU);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(normalized_value(255, 0.485F, 0.229F)), 0x400f'ee1dU);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(normalized_value(128, 0.485F, 0.229F)), 0x3d97'af32U);
  EXPECT_EQ(normalized_value(255, 0.0F, 1.0F), 1.0F);
}

TEST(NormalizationValue, RoundsAfterEachStepAndOnceToTheDtype) {
  for (int byte = 0; byte < 256; ++byte) {
    const volatile float scaled = static_cast<float>(byte) / 255.0F;
    const volatile float centered = scaled - kImageNet.mean[1];
    const volatile float value = centered / kImageNet.std[1];
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      const ValueTable table(dtype, kImageNet, 3);
      EXPECT_EQ(table.bits[1][static_cast<std::size_t>(byte)], rounded_bits(dtype, value)) << byte;
    }
  }
}

TEST(NormalizationValue, LeavesTheFourthChannelBetweenZeroAndOne) {
  const ValueTable table(DType::f32, kImageNet, 4);
  EXPECT_EQ(table.mean[3], 0.0F);
  EXPECT_EQ(table.std[3], 1.0F);
  EXPECT_EQ(value_of_bits(DType::f32, table.bits[3][255]), 1.0F);
  EXPECT_EQ(value_of_bits(DType::f32, table.bits[3][51]), 0.2F);
}

// Means and stds at which neighbours are equal, values fall, overflow, or become 0 and -0.
TEST(NormalizationInverse, FindsTheLowestByteOfEachValueAndOfNoOther) {
  const Normalization all[] = {
      kImageNet,
      {{0.0F, 0.0F, 0.0F}, {1.0F, -1.0F, 1e-30F}},
      {{0.5F, 0.5F, 0.5F}, {-0.001F, 1e30F, -1e30F}},
      {{100'000.0F, -100'000.0F, 128.0F / 255.0F}, {1.0F, -1.0F, 1e9F}},
  };
  for (const Normalization& normalization : all) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      const ValueTable table(dtype, normalization, 4);
      for (std::size_t channel = 0; channel < 4; ++channel) {
        std::set<std::uint32_t> seen;
        for (std::size_t byte = 0; byte < 256; ++byte) {
          const std::uint32_t bits = table.bits[channel][byte];
          const bool first = seen.insert(bits).second;
          const int found = table.byte_of(bits, channel);
          ASSERT_GE(found, 0);
          if (first) {
            ASSERT_EQ(found, static_cast<int>(byte)) << normalization.mean[0] << " channel " << channel;
          }
          ASSERT_EQ(table.bits[channel][static_cast<std::size_t>(found)], bits);
          ASSERT_EQ(table.nearest_byte(bits, channel), found);
        }
        if (dtype != DType::f32) {
          for (std::uint32_t bits = 0; bits < 65536; ++bits) {
            ASSERT_EQ(table.byte_of(bits, channel) >= 0, seen.count(bits) == 1) << bits;
          }
        }
      }
    }
  }
}

TEST(NormalizationInverse, TakesTheNearestByteForAnyOtherValue) {
  const ValueTable table(DType::f32, Normalization{}, 3);
  const auto nearest = [&](float value) {
    return table.nearest_byte(std::bit_cast<std::uint32_t>(value), 0);
  };
  EXPECT_EQ(nearest(0.2004F), 51);
  EXPECT_EQ(nearest(0.2021F), 52);
  EXPECT_EQ(nearest(-3.0F), 0);
  EXPECT_EQ(nearest(3.0F), 255);
  EXPECT_EQ(nearest(std::numeric_limits<float>::infinity()), 255);
  EXPECT_EQ(nearest(std::numeric_limits<float>::quiet_NaN()), 0);
  EXPECT_EQ(table.byte_of(std::bit_cast<std::uint32_t>(0.2004F), 0), -1);
  EXPECT_EQ(table.byte_of(std::bit_cast<std::uint32_t>(std::nanf("")), 0), -1);
}

}  // namespace
}  // namespace shard
