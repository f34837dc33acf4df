// Samples that only version 2 of the profile has: u16, many channels, tensors. transform_rows() against plain
// loops for every instruction set of this CPU, and a resize of u16 against float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/system/simd_targets.hpp"
#include "shard/dataset.hpp"
#include "support/expect_error.hpp"
#include "support/transform/expect_reference.hpp"
#include "support/transform/random_work.hpp"
#include "support/transform/reference_transform.hpp"
#include "transform/host_transform.hpp"

namespace shard {
namespace {

using testing::expect_reference;
using testing::Random;
using testing::RandomWork;
using testing::transformed;

class WideByInstructionSet : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_simd_target(GetParam()); }
  void TearDown() override { use_simd_target(""); }
};

INSTANTIATE_TEST_SUITE_P(Transform, WideByInstructionSet, ::testing::ValuesIn(simd_targets()),
                         [](const auto& set) { return set.param; });

TEST_P(WideByInstructionSet, EqualsPlainLoopsForSmallSamples) {
  Random random(61);
  for (int round = 0; round < 200 && !HasFatalFailure(); ++round)
    expect_reference(testing::random_wide_work(random, 24));
}

TEST_P(WideByInstructionSet, EqualsPlainLoopsForLargeSamples) {
  Random random(62);
  for (int round = 0; round < 8 && !HasFatalFailure(); ++round)
    expect_reference(testing::random_wide_work(random, 200, 14));
}

TEST_P(WideByInstructionSet, EqualsPlainLoopsForThousandsOfChannels) {
  Random random(63);
  for (const std::uint32_t channels : {4095U, 4096U}) {
    RandomWork work;
    do {
      work = testing::random_wide_work(random, 6, 5);
    } while (work.stored.channels != 5);
    work.stored.channels = work.delivered.channels = channels;
    work.normalization = {std::vector<float>(channels, 0.25F), std::vector<float>(channels, 0.5F)};
    work.normalization.mean.back() = 7;
    for (std::size_t i = 0; i < work.samples.size(); ++i) {
      work.samples[i].resize(work.stored.size_bytes());
      work.sources[i] = work.samples[i].data();
    }
    expect_reference(work);
  }
}

TEST_P(WideByInstructionSet, TensorsAreCopiedOrCast) {
  Random random(64);
  for (int round = 0; round < 200 && !HasFatalFailure(); ++round) {
    const RandomWork work = testing::random_tensor_work(random);
    if (work.stored == work.delivered) {
      const std::vector<std::byte> got = transformed(work);
      for (std::size_t i = 0; i < work.samples.size(); ++i)
        ASSERT_EQ(0, std::memcmp(got.data() + i * work.stored.size_bytes(), work.samples[i].data(),
                                 work.samples[i].size()));
    } else {
      expect_reference(work);
    }
  }
}

// Longer than what is converted at once.
TEST(TransformWide, LongTensorsAreCast) {
  RandomWork work;
  work.stored = tensor_spec(DType::f32, std::vector<std::uint64_t>{70'001});
  work.delivered = work.stored;
  work.delivered.dtype = DType::bf16;
  work.samples.emplace_back(work.stored.size_bytes());
  Random random(65);
  testing::fill_floats(random, DType::f32, true, work.samples[0]);
  work.sources = {work.samples[0].data()};
  work.crops = {{0, 0, 70'001, 1, false}};
  expect_reference(work);
}

// The exact average of a triangle, in float64. For boxes that are shrunk by n, a pass has 2 n terms.
double exact(std::int64_t box, std::int64_t out, std::int64_t x, const std::vector<double>& values) {
  const double scale = static_cast<double>(box) / static_cast<double>(out);
  const double support = std::max(1.0, scale);
  const double center = (static_cast<double>(x) + 0.5) * scale;
  double sum = 0;
  double total = 0;
  for (std::int64_t i = 0; i < box; ++i) {
    const double weight = 1.0 - std::abs(static_cast<double>(i) + 0.5 - center) / support;
    if (weight <= 0) continue;
    sum += weight * values[static_cast<std::size_t>(i)];
    total += weight;
  }
  return sum / total;
}

TEST(TransformWide, ResizedU16IsWithinHalfAUnitOfFloat64) {
  Random random(66);
  double worst_u16 = 0;
  double worst_f32 = 0;
  for (int round = 0; round < 60; ++round) {
    RandomWork work;
    work.stored = {DType::u16, random.one_of({Layout::nchw, Layout::nhwc}), random.one_of({1U, 3U, 13U}),
                   random.between(1, 60), random.between(1, 60)};
    work.delivered = work.stored;
    work.delivered.height = random.between((work.stored.height + 3) / 4, 60);
    work.delivered.width = random.between((work.stored.width + 3) / 4, 60);
    work.samples.emplace_back(work.stored.size_bytes());
    random.fill(work.samples[0]);
    work.sources = {work.samples[0].data()};
    work.crops = {{0, 0, work.stored.width, work.stored.height, false}};
    const std::vector<std::byte> whole = transformed(work);
    work.delivered.dtype = DType::f32;
    const std::vector<std::byte> floats = transformed(work);
    std::vector<std::byte> unused(1);
    const TransformWork reading = work.work(unused.data());
    for (std::uint32_t c = 0; c < work.stored.channels; ++c) {
      std::vector<std::vector<double>> columns(work.delivered.width);
      for (std::uint32_t y = 0; y < work.stored.height; ++y) {
        std::vector<double> row;
        for (std::uint32_t x = 0; x < work.stored.width; ++x)
          row.push_back(static_cast<double>(testing::float_of(reading, 0, c, y, x)));
        for (std::uint32_t x = 0; x < work.delivered.width; ++x)
          columns[x].push_back(exact(work.stored.width, work.delivered.width, x, row));
      }
      for (std::uint32_t y = 0; y < work.delivered.height; ++y) {
        for (std::uint32_t x = 0; x < work.delivered.width; ++x) {
          const double expected = exact(work.stored.height, work.delivered.height, y, columns[x]);
          const std::size_t at = testing::element_of(work.delivered, c, y, x);
          std::uint16_t value = 0;
          float scaled = 0;
          std::memcpy(&value, &whole[2 * at], 2);
          std::memcpy(&scaled, &floats[4 * at], 4);
          worst_u16 = std::max(worst_u16, std::abs(value - expected));
          worst_f32 = std::max(worst_f32, std::abs(static_cast<double>(scaled) * 65535.0 - expected));
        }
      }
    }
  }
  EXPECT_LE(worst_u16, 0.5 + 8.0 / 128);  // 8 terms a pass (float_arithmetic.hpp)
  EXPECT_GT(worst_u16, 0.4) << "values are rounded, so some are off by nearly half a unit";
  EXPECT_LE(worst_f32, 8.0 / 128 + 0.01);
}

TEST(TransformWide, U16BecomesTheUnitRange) {
  RandomWork work;
  work.stored = {DType::u16, Layout::nhwc, 1, 1, 3};
  work.delivered = {DType::f32, Layout::nhwc, 1, 1, 3};
  const std::uint16_t values[] = {0, 65535, 13107};
  work.samples.emplace_back(6);
  std::memcpy(work.samples[0].data(), values, 6);
  work.sources = {work.samples[0].data()};
  work.crops = {{0, 0, 3, 1, false}};
  float got[3];
  transform_rows(work.work(reinterpret_cast<std::byte*>(got)), 0, 1);
  EXPECT_EQ(got[0], 0.0F);
  EXPECT_EQ(got[1], 1.0F);
  EXPECT_EQ(got[2], 13107.0F / 65535.0F);
}

// What may be asked for.
class WideOptions : public ::testing::Test {
 protected:
  static SampleSpec check(const SampleSpec& stored, const TransformOptions& options) {
    return check_transform(stored, options);
  }
  static void refused(const SampleSpec& stored, const TransformOptions& options, const char* why) {
    EXPECT_SHARD_ERROR(check_transform(stored, options), ErrorCode::invalid_argument, why);
  }
  static TransformOptions to(DType dtype) {
    TransformOptions options;
    options.dtype = dtype;
    return options;
  }
  const SampleSpec u16_{DType::u16, Layout::nchw, 3, 8, 8};
  const SampleSpec bands_{DType::u8, Layout::nchw, 13, 8, 8};
  const SampleSpec tensor_ = tensor_spec(DType::f32, std::vector<std::uint64_t>{4, 8, 8});
};

TEST_F(WideOptions, DtypesOfU16) {
  EXPECT_EQ(check(u16_, {}), u16_);
  for (const DType dtype : {DType::u16, DType::f16, DType::bf16, DType::f32})
    EXPECT_EQ(check(u16_, to(dtype)).dtype, dtype);
  refused(u16_, to(DType::u8), "dtype u8 cannot be delivered from samples stored as u16");
  refused(bands_, to(DType::u16), "dtype u16 cannot be delivered: u8, f16, bf16 or f32");
}

TEST_F(WideOptions, OneMeanAndStdForEachChannel) {
  TransformOptions options = to(DType::f16);
  options.normalization = Normalization{std::vector<float>(13, 0.5F), std::vector<float>(13, 0.5F)};
  EXPECT_EQ(check(bands_, options).dtype, DType::f16);
  options.normalization->std.pop_back();
  refused(bands_, options, "13 means and 12 stds, but the samples have 13 channels");
  options.normalization = Normalization{};
  refused(bands_, options, "3 means and 3 stds, but the samples have 13 channels");
  options.normalization = Normalization{{0.5F}, {0.5F}};
  DatasetInfo info;
  info.spec = {DType::u16, Layout::nchw, 1, 8, 8};
  const TransformWork work = plan_transform(info, options);
  EXPECT_TRUE(work.normalize);
  EXPECT_EQ(work.normalization.mean, (std::vector<float>{0.5F, 0, 0}));
}

TEST_F(WideOptions, TensorsAreNeitherCroppedNorFlippedNorNormalised) {
  EXPECT_EQ(check(tensor_, {}), tensor_);
  EXPECT_TRUE(is_identity(tensor_, {}));
  EXPECT_EQ(check(tensor_, to(DType::bf16)).dtype, DType::bf16);
  EXPECT_EQ(check(tensor_, to(DType::bf16)).axes, tensor_.axes);
  TransformOptions options;
  options.crop = CropKind::center;
  options.crop_height = options.crop_width = 4;
  refused(tensor_, options, "f32 [4, 8, 8]: they cannot be cropped");
  options = {};
  options.flip = 0.5;
  refused(tensor_, options, "cannot be flipped");
  options = {};
  options.layout = Layout::nhwc;
  refused(tensor_, options, "have no layout");
  options = {};
  options.normalization = Normalization{};
  refused(tensor_, options, "not normalised");
  refused(tensor_, to(DType::u8), "dtype u8 is not possible");
  const SampleSpec ids = tensor_spec(DType::i64, std::vector<std::uint64_t>{7});
  EXPECT_EQ(check(ids, {}), ids);
  refused(ids, to(DType::f32), "they are delivered as stored; dtype f32 is not possible");
}

}  // namespace
}  // namespace shard
