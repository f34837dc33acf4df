// Samples stored as floats: every value of the types, the program's float environment, extreme boxes, NaN and
// infinities, and what a resize of floats has in common with one of bytes. The random works of
// host_transform_test.cpp hold them against plain loops.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "base/system/simd_targets.hpp"
#include "support/transform/expect_reference.hpp"
#include "support/transform/random_work.hpp"
#include "support/transform/reference_transform.hpp"
#include "transform/host_transform.hpp"
#include "transform/transform_kernels.hpp"

namespace shard {
namespace {

using testing::expect_reference;
using testing::Random;
using testing::RandomWork;
using testing::transformed;

constexpr DType kFloatTypes[] = {DType::f16, DType::bf16, DType::f32};

// One sample, whole, to `delivered`.
RandomWork one_sample(const SampleSpec& stored, const SampleSpec& delivered) {
  RandomWork work;
  work.stored = stored;
  work.delivered = delivered;
  work.samples.emplace_back(stored.size_bytes());
  work.sources = {work.samples[0].data()};
  work.crops = {{0, 0, stored.width, stored.height, false}};
  return work;
}

class FloatsByInstructionSet : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_simd_target(GetParam()); }
  void TearDown() override { use_simd_target(""); }
};

INSTANTIATE_TEST_SUITE_P(Transform, FloatsByInstructionSet, ::testing::ValuesIn(simd_targets()),
                         [](const auto& set) { return set.param; });

TEST_P(FloatsByInstructionSet, CastsEveryValueOfSixteenBits) {
  for (DType from : {DType::f16, DType::bf16}) {
    for (DType to : kFloatTypes) {
      RandomWork work = one_sample({from, Layout::nchw, 1, 256, 256}, {to, Layout::nhwc, 1, 256, 256});
      for (std::uint32_t bits = 0; bits < 65536; ++bits) std::memcpy(&work.samples[0][2 * bits], &bits, 2);
      expect_reference(work);  // from == to: the same bits, also of NaN
    }
  }
}

// All exponents with fractions around the ties of both 16-bit types.
TEST_P(FloatsByInstructionSet, RoundsFloat32ToNearestEven) {
  std::vector<std::uint32_t> bits;
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent)
    for (std::uint32_t sign : {0U, 0x80000000U})
      for (std::uint32_t shift = 10; shift <= 23; ++shift)
        for (std::uint32_t unit = 0; unit < 4; ++unit)
          for (std::uint32_t off : {0xFFFFFFFFU, 0U, 1U}) {
            const std::uint32_t tie = (unit << shift) + (1U << (shift - 1));
            bits.push_back(sign | exponent << 23U | ((tie + off) & 0x7FFFFFU));
          }
  const auto count = static_cast<std::uint32_t>(bits.size());
  ASSERT_LE(count / 256, 65535U);
  for (DType to : kFloatTypes) {
    for (bool normalize : {false, true}) {
      const std::uint32_t rows = count / 256;
      RandomWork work =
          one_sample({DType::f32, Layout::nchw, 1, rows, 256}, {to, Layout::nchw, 1, rows, 256});
      work.normalize = normalize;
      work.normalization = {{0.25F, 0, 0}, {3.0F, 1, 1}};
      std::memcpy(work.samples[0].data(), bits.data(), work.samples[0].size());
      expect_reference(work);
    }
  }
}

TEST_P(FloatsByInstructionSet, TakesExtremeBoxes) {
  Random random(21);
  struct Case {
    std::uint32_t height, width, out_height, out_width;
  };
  for (const Case& size :
       {Case{1, 1, 1, 8192}, Case{1, 1, 8192, 1}, Case{2, 65535, 1, 2048}, Case{65535, 2, 2048, 3},
        Case{32, 32, 1, 1}, Case{3, 7, 3, 90}, Case{50, 9, 400, 9}})
    for (Layout layout : {Layout::nchw, Layout::nhwc}) {
      const DType stored = random.one_of({DType::f16, DType::bf16, DType::f32});
      RandomWork work = one_sample({stored, layout, 2, size.height, size.width},
                                   {DType::f16, Layout::nhwc, 2, size.out_height, size.out_width});
      testing::fill_floats(random, stored, true, work.samples[0]);
      work.crops[0].flip = random.coin();
      expect_reference(work);
    }
}

TEST(TransformFloats, KeepTheirBitsWhereNothingIsComputed) {
  Random random(22);
  for (DType dtype : kFloatTypes) {
    RandomWork work = one_sample({dtype, Layout::nhwc, 3, 9, 11}, {dtype, Layout::nhwc, 3, 9, 11});
    random.fill(work.samples[0]);
    // In a batch with a resized sample too: what becomes of a sample does not depend on the others.
    work.samples.push_back(work.samples[0]);
    work.sources = {work.samples[0].data(), work.samples[1].data()};
    work.crops.push_back({2, 1, 7, 8, false});
    const std::vector<std::byte> got = transformed(work);
    EXPECT_TRUE(std::equal(work.samples[0].begin(), work.samples[0].end(), got.begin()));
    expect_reference(work);
  }
}

TEST(TransformFloats, StayConstantWhenResized) {
  Random random(23);
  for (int round = 0; round < 40; ++round) {
    const DType dtype = random.one_of({DType::f16, DType::bf16});
    const float value = static_cast<float>(random.between(1, 2000)) / 256.0F - 4.0F;
    const std::uint16_t bits = dtype == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
    RandomWork work = one_sample({dtype, Layout::nhwc, 3, random.between(1, 60), random.between(1, 60)},
                                 {dtype, Layout::nchw, 3, random.between(2, 50), random.between(2, 50)});
    for (std::size_t at = 0; at < work.samples[0].size(); at += 2)
      std::memcpy(&work.samples[0][at], &bits, 2);
    const std::vector<std::byte> got = transformed(work);
    for (std::size_t at = 0; at < got.size(); at += 2)
      ASSERT_EQ(0, std::memcmp(&got[at], &bits, 2)) << value << ": " << work.describe();
  }
}

// One value that is not finite is seen by the outputs near it alone.
TEST(TransformFloats, LetNanAndInfinityReachTheOutputsThatSeeThem) {
  const SampleSpec stored{DType::f32, Layout::nchw, 1, 8, 8};
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    RandomWork work = one_sample(stored, {DType::f32, Layout::nchw, 1, 16, 16});
    std::memcpy(&work.samples[0][(3 * 8 + 5) * 4], &bad, 4);  // row 3, column 5
    const std::vector<std::byte> got = transformed(work);
    for (std::size_t y = 0; y < 16; ++y)
      for (std::size_t x = 0; x < 16; ++x) {
        float value = 0;
        std::memcpy(&value, &got[(y * 16 + x) * 4], 4);
        // Twice the size: an output sees the two stored pixels nearest to it.
        const bool sees = y >= 5 && y <= 8 && x >= 9 && x <= 12;
        if (!sees) {
          EXPECT_EQ(value, 0.0F) << y << ", " << x;
        } else if (std::isnan(bad)) {
          EXPECT_EQ(std::bit_cast<std::uint32_t>(value), 0x7FC00000U);
        } else {
          EXPECT_EQ(value, bad) << y << ", " << x;
        }
      }
  }
}

// The two arithmetics are of one filter.
TEST(TransformFloats, AreResizedAsBytesAre) {
  Random random(24);
  for (int round = 0; round < 60; ++round) {
    RandomWork bytes = testing::random_work(random, 60);
    while (bytes.stored.dtype != DType::u8) bytes = testing::random_work(random, 60);
    bytes.delivered.dtype = DType::u8;
    RandomWork floats = bytes;
    floats.stored.dtype = floats.delivered.dtype = DType::f32;
    floats.normalize = false;
    for (std::size_t i = 0; i < bytes.samples.size(); ++i) {
      floats.samples[i].resize(floats.stored.size_bytes());
      for (std::size_t at = 0; at < bytes.samples[i].size(); ++at) {
        const auto value = static_cast<float>(bytes.samples[i][at]);
        std::memcpy(&floats.samples[i][4 * at], &value, 4);
      }
      floats.sources[i] = floats.samples[i].data();
    }
    const std::vector<std::byte> levels = transformed(bytes);
    const std::vector<std::byte> values = transformed(floats);
    for (std::size_t at = 0; at < levels.size(); ++at) {
      float value = 0;
      std::memcpy(&value, &values[4 * at], 4);
      ASSERT_NEAR(value, static_cast<float>(levels[at]), 0.7F) << bytes.describe();
    }
  }
}

#if defined(__SSE2__)
// Programs flush subnormal numbers to zero or round otherwise, and threads inherit that.
TEST(TransformFloats, DoNotDependOnTheProgramsFloatEnvironment) {
  Random random(25);
  for (int round = 0; round < 50; ++round) {
    RandomWork work = testing::random_work(random, 30);
    if (work.stored.dtype == DType::u8) continue;
    const std::vector<std::byte> expected = transformed(work);
    constexpr unsigned kFlushToZero = 0x8040;  // FTZ and DAZ
    const unsigned before = _mm_getcsr();
    std::fesetround(FE_UPWARD);
    _mm_setcsr(_mm_getcsr() | kFlushToZero);
    const unsigned chosen = _mm_getcsr() & ~0x3FU;  // without what has happened
    const std::vector<std::byte> got = transformed(work);
    const unsigned after = _mm_getcsr() & ~0x3FU;
    std::fesetround(FE_TONEAREST);
    _mm_setcsr(before);
    ASSERT_EQ(got, expected) << work.describe();
    ASSERT_EQ(after, chosen);
  }
}
#endif

}  // namespace
}  // namespace shard
