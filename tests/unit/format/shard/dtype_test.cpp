// Names and sizes of element types, and float16 and bfloat16 against plain references.
#include "shard/dtype.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

namespace shard {
namespace {

// binary16 from its definition.
double f16_reference(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(DType, NamesGoBothWays) {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(DType::f64); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_string(to_string(dtype)), dtype);
    EXPECT_EQ(dtype_from_safetensors(safetensors_name(dtype)), dtype);
    EXPECT_EQ(dtype_from_option(long_name(dtype)), dtype);
    const char* const kinds = dtype == DType::boolean ? "b"
                              : dtype == DType::bf16  ? "u"
                              : is_floating(dtype)    ? "f"
                                                      : "iu";
    EXPECT_NE(std::string_view(kinds).find(npy_name(dtype).at(1)), std::string_view::npos)
        << to_string(dtype);
    EXPECT_EQ(npy_name(dtype).substr(2), std::to_string(size_bytes(dtype)));
    EXPECT_EQ(npy_name(dtype)[0], size_bytes(dtype) == 1 ? '|' : '<');
  }
  EXPECT_EQ(dtype_from_string("U8"), std::nullopt);
  EXPECT_EQ(dtype_from_string("float16"), std::nullopt);  // not in files
  EXPECT_EQ(dtype_from_option("float16"), DType::f16);
  EXPECT_EQ(dtype_from_option("f16"), DType::f16);
  EXPECT_EQ(dtype_from_option("bfloat16"), DType::bf16);
  EXPECT_EQ(dtype_from_option("uint8"), DType::u8);
  EXPECT_EQ(dtype_from_option("float"), std::nullopt);
  EXPECT_EQ(dtype_from_safetensors("u8"), std::nullopt);
  EXPECT_EQ(size_bytes(DType::boolean), 1U);
  EXPECT_EQ(size_bytes(DType::bf16), 2U);
  EXPECT_EQ(size_bytes(DType::f32), 4U);
  EXPECT_EQ(size_bytes(DType::u64), 8U);
  EXPECT_EQ(layout_from_string("nhwc"), Layout::nhwc);
  EXPECT_EQ(layout_from_string("NHWC"), std::nullopt);
}

TEST(Float16, EveryPatternWidensToItsValueAndComesBack) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double expected = f16_reference(half);
    const float found = f16_to_f32(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(found)) << bits;
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(found)))) << bits;
      EXPECT_EQ(f32_to_f16(found) & 0x8000, half & 0x8000);
      continue;
    }
    ASSERT_EQ(static_cast<double>(found), expected) << bits;
    ASSERT_EQ(std::signbit(found), std::signbit(expected)) << bits;
    ASSERT_EQ(f32_to_f16(found), half) << bits;
  }
}

TEST(Float16, BetweenNeighboursTheNearestWinsAndTiesGoToEven) {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits);
    const auto high = static_cast<std::uint16_t>(bits + 1);
    const auto even = bits % 2 == 0 ? low : high;
    const auto middle = static_cast<float>((f16_reference(low) + f16_reference(high)) / 2);  // exact
    const float below = std::nextafter(middle, 0.0F);
    const float above = std::nextafter(middle, std::numeric_limits<float>::infinity());
    ASSERT_EQ(f32_to_f16(middle), even) << bits;
    ASSERT_EQ(f32_to_f16(below), low) << bits;
    ASSERT_EQ(f32_to_f16(above), high) << bits;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << bits;
    ASSERT_EQ(f32_to_f16(-above), high | 0x8000) << bits;
  }
}

TEST(Float16, LargeValuesOverflowAndSmallOnesVanish) {
  EXPECT_EQ(f32_to_f16(65504.0F), 0x7bff);
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30F), 0xfc00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(f32_to_f16(std::ldexp(1.0F, -25)), 0);
  EXPECT_EQ(f32_to_f16(std::nextafter(std::ldexp(1.0F, -25), 1.0F)), 1);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f32_to_f16(-0.0F), 0x8000);
}

TEST(BFloat16, EveryPatternComesBackAndTiesGoToEven) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = bf16_to_f32(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(wide)))) << bits;
      continue;
    }
    ASSERT_EQ(f32_to_bf16(wide), half) << bits;
    if ((bits & 0x7fff) >= 0x7f80) continue;  // infinity
    const auto middle = std::bit_cast<float>(bits << 16 | 0x8000U);
    ASSERT_EQ(f32_to_bf16(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(bits << 16 | 0x7fffU)), bits);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(bits << 16 | 0x8001U)), bits + 1);
  }
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001U)))));
}

}  // namespace
}  // namespace shard
