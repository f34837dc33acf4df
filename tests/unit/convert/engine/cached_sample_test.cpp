// CachedSample: bytes and back, and bytes that are no sample.
#include "convert/engine/cached_sample.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace shard::convert {
namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

std::vector<std::byte> joined(const CachedSample& sample) {
  std::vector<std::byte> bytes;
  const SamplePieces pieces = serialize_sample(sample);
  for (const std::span<const std::byte> piece : pieces.pieces)
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

CachedSample small(const std::vector<std::byte>& pixels) {
  CachedSample sample{42, std::nullopt, {}, JpegUse::transcoded, {SampleValues(pixels, 3, 5)}};
  sample.warnings.add(image::Warning::few_bits);
  SampleValues frame(pixels, 7, 9);
  frame.frame = SampleValues::Frame{{100, 0x111122, 0x70009, 6}, 77};
  sample.images.push_back(frame);
  return sample;
}

TEST(CachedSample, HasAllThatAWorkerStores) {
  const std::vector<std::byte> pixels = some_bytes(45);
  const std::vector<std::byte> bytes = joined(small(pixels));
  const auto read = parse_sample(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->digest, 42U);
  EXPECT_FALSE(read->reject);
  EXPECT_EQ(read->warnings, small(pixels).warnings);
  EXPECT_EQ(read->jpeg, JpegUse::transcoded);
  ASSERT_EQ(read->images.size(), 2U);
  EXPECT_EQ(read->images[0].height, 3U);
  EXPECT_EQ(read->images[0].width, 5U);
  EXPECT_FALSE(read->images[0].frame);
  EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), read->images[0].bytes.begin()));
  ASSERT_TRUE(read->images[1].frame);
  EXPECT_EQ(read->images[1].frame->file, (jpeg::FrameFile{100, 0x111122, 0x70009, 6}));
  EXPECT_EQ(read->images[1].frame->checksum, 77U);
}

TEST(CachedSample, KnowsRejectsWithTheirReasons) {
  const std::vector<std::byte> bytes = joined({std::nullopt, "it ends early", {}, {}, {}});
  const auto read = parse_sample(bytes);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->digest);
  EXPECT_EQ(read->reject, "it ends early");
}

TEST(CachedSample, RefusesBytesThatAreCutOrLonger) {
  const std::vector<std::byte> pixels = some_bytes(45);
  std::vector<std::byte> bytes = joined(small(pixels));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_sample(std::span(bytes).first(size))) << size;
  bytes.emplace_back();
  EXPECT_FALSE(parse_sample(bytes));
}

TEST(CachedSample, ReadsNothingOutsideOfAnyBytes) {
  const std::vector<std::byte> pixels = some_bytes(20);
  const std::vector<std::byte> good = joined(small(pixels));
  std::minstd_rand random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes = good;
    bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    if (const auto read = parse_sample(bytes))
      for (const SampleValues& image : read->images) {
        EXPECT_GE(image.bytes.data(), bytes.data());
        EXPECT_LE(image.bytes.data() + image.bytes.size(), bytes.data() + bytes.size());
      }
  }
}

}  // namespace
}  // namespace shard::convert
