#include "prefetch/resident.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/loader/loader_fixture.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kSample = 100;

TEST(ResidentSamples, KeepsTheSamplesThatFit) {
  const auto device = make_host_device(1);
  ResidentSamples samples(*device, 3 * kSample);
  EXPECT_EQ(samples.find(7, kSample), nullptr);
  const std::byte* const seven = samples.add(7, kSample);
  ASSERT_NE(seven, nullptr);
  EXPECT_EQ(samples.find(7, kSample), seven);
  const std::byte* const eight = samples.add(8, kSample);
  EXPECT_EQ(eight, seven + kSample);
  EXPECT_NE(samples.add(9, kSample), nullptr);
  EXPECT_EQ(samples.add(10, kSample), nullptr);
  EXPECT_EQ(samples.find(10, kSample), nullptr);
}

TEST(ResidentSamples, BeginsAtMultiplesOfTheAlignment) {
  const auto device = make_host_device(1);
  ResidentSamples samples(*device, 384 + kSample, 128);
  const std::byte* const first = samples.add(0, 129);
  EXPECT_EQ(samples.add(1, 1), first + 256);
  EXPECT_EQ(samples.add(2, kSample), first + 384);
  EXPECT_EQ(samples.add(3, 1), nullptr);
}

// Its file was changed. What lies there must not be read as the larger sample that it is now.
TEST(ResidentSamples, HasNoSampleOfAnotherSize) {
  const auto device = make_host_device(1);
  ResidentSamples samples(*device, 3 * kSample);
  const std::byte* const one = samples.add(1, kSample);
  for (const std::uint64_t size : {kSample - 1, kSample + 1}) {
    EXPECT_EQ(samples.find(1, size), nullptr);
    EXPECT_EQ(samples.add(1, size), nullptr);
  }
  EXPECT_EQ(samples.find(1, kSample), one);
}

// A loader that is stopped again and again still comes to have all samples on the device.
TEST(ResidentSamples, LosesNoRoomToUploadsThatWereStopped) {
  const auto device = make_host_device(1);
  ResidentSamples samples(*device, 3 * kSample);
  for (int attempt = 0; attempt < 100; ++attempt) {
    for (const std::uint64_t sample : {4, 5, 6}) ASSERT_NE(samples.add(sample, kSample), nullptr) << attempt;
    for (const std::uint64_t sample : {6, 4, 5}) samples.forget(sample);
    for (const std::uint64_t sample : {4, 5, 6}) EXPECT_EQ(samples.find(sample, kSample), nullptr);
  }
  samples.forget(1000);  // was never there
  EXPECT_NE(samples.add(6, kSample), samples.add(5, kSample));
  EXPECT_EQ(samples.add(1000, kSample), nullptr);
}

// Beside a std::map, while the table grows: keys that are neighbours, and keys far apart.
TEST(ResidentSamples, IsRightForManySamples) {
  const auto device = make_host_device(1);
  constexpr std::uint64_t kMany = 20000;
  ResidentSamples samples(*device, kMany * kSample);
  std::map<std::uint64_t, const std::byte*> places;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    const std::uint64_t sample = i % 3 == 0 ? i : i << 40U;
    samples.expect(sample);
    ASSERT_EQ(samples.find(sample, kSample), nullptr) << sample;
    ASSERT_NE(places[sample] = samples.add(sample, kSample), nullptr) << sample;
    if (i % 5 == 0) samples.forget(sample);
    if (i % 5 == 0) places[sample] = nullptr;
  }
  for (const auto& [sample, place] : places) ASSERT_EQ(samples.find(sample, kSample), place) << sample;
  for (std::uint64_t i = 0; i < kMany; i += 5) {
    const std::uint64_t sample = i % 3 == 0 ? i : i << 40U;
    ASSERT_NE(samples.add(sample, kSample), nullptr) << sample;
  }
  EXPECT_EQ(samples.add(std::uint64_t{1} << 60U, kSample), nullptr);
  EXPECT_EQ(samples.find(2, kSample), nullptr);  // of the others none has this number
}

}  // namespace
}  // namespace shard::testing
