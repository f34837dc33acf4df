// transform_rows() against plain loops over the same arithmetic, for every instruction set of this CPU.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/system/simd_targets.hpp"
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

class EachInstructionSet : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_simd_target(GetParam()); }
  void TearDown() override { use_simd_target(""); }
};

INSTANTIATE_TEST_SUITE_P(Transform, EachInstructionSet, ::testing::ValuesIn(simd_targets()),
                         [](const auto& set) { return set.param; });

TEST_P(EachInstructionSet, EqualsPlainLoopsForSmallSamples) {
  Random random(1);
  for (int round = 0; round < 300 && !HasFatalFailure(); ++round)
    expect_reference(testing::random_work(random, 40));
}

TEST_P(EachInstructionSet, EqualsPlainLoopsForLargeSamples) {
  Random random(2);
  for (int round = 0; round < 25 && !HasFatalFailure(); ++round)
    expect_reference(testing::random_work(random, 300));
}

TEST_P(EachInstructionSet, EqualsPlainLoopsForTheUsualCrop) {
  Random random(3);
  for (DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
    for (Layout layout : {Layout::nchw, Layout::nhwc}) {
      RandomWork work;
      work.stored = {DType::u8, Layout::nhwc, 3, 256, 256};
      work.delivered = {dtype, layout, 3, 224, 224};
      work.normalize = true;
      work.normalization = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
      work.samples.assign(3, std::vector<std::byte>(work.stored.size_bytes()));
      for (auto& sample : work.samples) {
        random.fill(sample);
        work.sources.push_back(sample.data());
      }
      work.crops = {{0, 0, 256, 256, true}, {32, 32, 224, 224, true}, {100, 50, 156, 206, false}};
      expect_reference(work);
    }
  }
}

TEST_P(EachInstructionSet, GivesTheBitsOfTheTableForManyNormalizations) {
  Random random(4);
  RandomWork work;
  work.stored = {DType::u8, Layout::nhwc, 3, 16, 48};
  work.normalize = true;
  work.samples.emplace_back(work.stored.size_bytes());
  for (std::size_t i = 0; i < work.samples[0].size(); ++i) work.samples[0][i] = static_cast<std::byte>(i / 3);
  work.sources = {work.samples[0].data()};
  work.crops = {{0, 0, 48, 16, false}};
  for (int round = 0; round < 60; ++round) {
    for (std::size_t c = 0; c < 3; ++c) {
      work.normalization.mean[c] = static_cast<float>(random.between(0, 1000)) / 1000.0F;
      work.normalization.std[c] =
          static_cast<float>(random.between(1, 1000)) / 999.0F * (random.coin() ? 1.0F : -1.0F);
    }
    work.delivered = work.stored;
    work.delivered.dtype = random.one_of({DType::f16, DType::bf16, DType::f32});
    work.delivered.layout = random.one_of({Layout::nchw, Layout::nhwc});
    expect_reference(work);
  }
}

TEST(Transform, GivesTheSameRowsInPartsAndFromSeveralThreads) {
  Random random(5);
  for (int round = 0; round < 20; ++round) {
    RandomWork work = testing::random_work(random, 64);
    const std::vector<std::byte> whole = transformed(work);
    std::vector<std::byte> parts(work.target_bytes());
    const TransformWork shared = work.work(parts.data());
    std::vector<std::thread> threads;
    for (std::size_t row = 0; row < work.samples.size(); ++row)
      threads.emplace_back([&shared, row] { transform_rows(shared, row, row + 1); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(parts, whole) << work.describe();
  }
}

TEST(Transform, ScalesToTheUnitRangeWithoutNormalization) {
  RandomWork work;
  work.stored = {DType::u8, Layout::nhwc, 1, 1, 2};
  work.delivered = {DType::f32, Layout::nhwc, 1, 1, 2};
  work.samples = {{std::byte{0}, std::byte{255}}};
  work.sources = {work.samples[0].data()};
  work.crops = {{0, 0, 2, 1, false}};
  float values[2];
  transform_rows(work.work(reinterpret_cast<std::byte*>(values)), 0, 1);
  EXPECT_EQ(values[0], 0.0F);
  EXPECT_EQ(values[1], 1.0F);
}

class RefusedWork : public ::testing::Test {
 protected:
  RefusedWork() {
    work_.stored = {DType::u8, Layout::nhwc, 3, 8, 10};
    work_.delivered = {DType::u8, Layout::nhwc, 3, 4, 4};
    work_.samples.emplace_back(work_.stored.size_bytes());
    work_.sources = {work_.samples[0].data()};
    work_.crops = {{0, 0, 4, 4, false}};
    target_.resize(work_.target_bytes());
  }
  void expect_refusal(const char* piece) {
    const std::vector<std::byte> before = target_;
    EXPECT_SHARD_ERROR(transform_rows(work_.work(target_.data()), 0, work_.sources.size()),
                       ErrorCode::invalid_argument, piece);
    EXPECT_EQ(target_, before);
  }
  RandomWork work_;
  std::vector<std::byte> target_;
};

TEST_F(RefusedWork, BoxOutsideTheSample) {
  for (const SampleCrop& crop :
       {SampleCrop{7, 0, 4, 4, false}, SampleCrop{0, 5, 4, 4, false}, SampleCrop{0, 0, 11, 4, false},
        SampleCrop{0, 0, 4, 9, false}, SampleCrop{0xFFFFFFFFU, 0, 4, 4, false},
        SampleCrop{0, 0xFFFFFFFDU, 4, 4, false}}) {
    work_.crops = {crop};
    expect_refusal("not inside the stored 8 x 10");
  }
}

TEST_F(RefusedWork, EmptyBox) {
  work_.crops = {{0, 0, 0, 4, false}};
  expect_refusal("box of 4 x 0");
}

TEST_F(RefusedWork, TooStrongShrink) {
  work_.stored.width = 33;
  work_.samples[0].resize(work_.stored.size_bytes());
  work_.sources = {work_.samples[0].data()};
  work_.delivered.width = 1;
  work_.crops = {{0, 0, 33, 4, false}};
  expect_refusal("shrunk at most 32 times");
}

TEST_F(RefusedWork, OtherChannelsOrTypes) {
  work_.delivered.channels = 1;
  expect_refusal("3 stored and 1 delivered channels");
  work_.delivered.channels = 3;
  work_.stored.dtype = DType::f16;
  expect_refusal("stored f16 cannot be delivered as u8");
}

TEST_F(RefusedWork, MissingViewsSourcesAndRows) {
  work_.crops.clear();
  expect_refusal("1 sources and 0 crops");
  work_.crops = {{0, 0, 4, 4, false}};
  EXPECT_SHARD_ERROR(transform_rows(work_.work(target_.data()), 0, 2), ErrorCode::invalid_argument,
                     "rows 0 to 2 of a batch of 1");
  EXPECT_SHARD_ERROR(transform_rows(work_.work(nullptr), 0, 1), ErrorCode::invalid_argument, "no target");
  work_.sources = {nullptr};
  expect_refusal("no source");
}

}  // namespace
}  // namespace shard
