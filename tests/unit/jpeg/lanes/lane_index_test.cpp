// The lanes of a device find the index that the host's builder makes, bit for bit.
#include "jpeg/lanes/lane_index.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "shard/error.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/jpeg/random_jpeg.hpp"
#include "support/rounds.hpp"

namespace shard::testing {
namespace {

using Bytes = std::vector<std::byte>;

// What the builder says of a file, in the words of the lanes: the index, or none.
std::optional<Bytes> right_index(std::span<const std::byte> file, const jpeg::Header& header) {
  try {
    jpeg::IndexBuilder builder;
    jpeg::IndexBuilder::Result result = builder.build(file, header);
    if (result.extra_bytes != 0) return std::nullopt;
    // The lanes want EOI right behind the last bit.
    const jpeg::Index index = jpeg::parse_index(result.index, header.layout, header.data_offset, file.size());
    const std::size_t position = index[index.size()].position;
    std::size_t end = header.data_offset + (position + 7) / 8;
    if (position % 8 != 0 && file[end - 1] == std::byte{0xFF}) ++end;  // stuffing
    if (file[end + 1] != std::byte{0xD9}) return std::nullopt;
    return result.index;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void expect_right(jpeg::LaneIndex& lanes, const Bytes& file, const std::string& name) {
  const jpeg::Header header = jpeg::parse_header(file);
  const jpeg::LaneIndex::Result result = lanes.build(file, header);
  const std::optional<Bytes> right = right_index(file, header);
  ASSERT_EQ(result.fault == jpeg::Fault::none, right.has_value())
      << name << ", fault " << static_cast<int>(result.fault);
  if (right) {
    ASSERT_EQ(result.index, *right) << name;
  }
}

TEST(JpegLaneIndex, EqualsTheBuildersForWhatEncodersWrite) {
  const std::uint64_t count = rounds(1000, 100);
  jpeg::LaneIndex lanes;  // one for all
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    const JpegOptions options = random_options(random, round % 10 == 0 ? 1000 : 200);
    const Bytes file = random_file(random, options);
    ASSERT_TRUE(right_index(file, jpeg::parse_header(file))) << "seed " << first_seed() + round;
    expect_right(lanes, file, options.text() + ", seed " + std::to_string(first_seed() + round));
  }
}

TEST(JpegLaneIndex, EqualsTheBuildersForCodesAndCoefficientsThatNoEncoderWrites) {
  const std::uint64_t count = rounds(1000, 100);
  jpeg::LaneIndex lanes;
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    RandomJpegOptions options;
    options.coefficients = static_cast<Coefficients>(round % 3);
    options.most_pixels = round % 10 == 0 ? 600 : 150;
    expect_right(lanes, random_jpeg(random, options), "seed " + std::to_string(first_seed() + round));
  }
}

// Several groups of lanes, and joins between them.
TEST(JpegLaneIndex, DividesALargeFile) {
  std::mt19937_64 random(first_seed());
  JpegOptions options;
  options.width = 2000;
  options.height = 900;
  options.quality = 97;
  options.factors = {{2, 2}, {1, 1}, {1, 1}};
  const Bytes file = random_file(random, options);
  jpeg::LaneIndex lanes;
  expect_right(lanes, file, options.text());
  const jpeg::LaneIndex::Result result = lanes.build(file, jpeg::parse_header(file));
  EXPECT_GT(result.plan.groups, 3U);
  EXPECT_EQ(result.plan.part_bytes, jpeg::kMostBytesOfPart);
}

// No lane but the first one can know which block of an MCU is the first, if all have the same codes.
TEST(JpegLaneIndex, ReadsAloneWhereLanesNeverMeet) {
  std::mt19937_64 random(first_seed());
  JpegOptions options;
  options.width = options.height = 700;
  options.as_is = true;  // RGB: one table for all components
  options.quality = 95;
  const Bytes file = random_file(random, options);
  jpeg::LaneIndex lanes;
  expect_right(lanes, file, options.text());
  EXPECT_GT(lanes.build(file, jpeg::parse_header(file)).read_alone, 0U);
}

// With parts of a few bytes lanes meet late or never, and a pool that is too small leaves them without room:
// slower, not wrong.
TEST(JpegLaneIndex, FindsTheSameWithPartsAndPoolsOfAnySize) {
  const std::uint64_t count = rounds(1000, 100);
  jpeg::LaneIndex lanes;
  std::uint64_t without_room = 0;
  std::uint64_t alone = 0;
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    const Bytes file =
        round % 2 == 0 ? random_file(random, random_options(random, 300)) : random_jpeg(random, {});
    const jpeg::Header header = jpeg::parse_header(file);
    const auto part = static_cast<std::uint32_t>(1 + random() % 200);
    const auto chunks = static_cast<std::uint32_t>(random() % (1 + header.layout.mcus() / 8));
    const jpeg::LaneIndex::Result result =
        lanes.build(file, header, jpeg::plan_lanes(static_cast<std::uint32_t>(file.size()), part, chunks));
    const std::optional<Bytes> right = right_index(file, header);
    ASSERT_EQ(result.fault == jpeg::Fault::none, right.has_value()) << "seed " << first_seed() + round;
    if (right) {
      ASSERT_EQ(result.index, *right) << "seed " << first_seed() + round;
    }
    if (result.chunks_taken > chunks) ++without_room;
    alone += result.read_alone;
  }
  EXPECT_GT(without_room, count / 10);
  EXPECT_GT(alone, 0U);
}

TEST(JpegLaneIndex, SaysWhatTheBuilderSaysOfDamagedFiles) {
  const std::uint64_t count = rounds(3000, 300);
  jpeg::LaneIndex lanes;
  std::uint64_t damaged = 0;
  for (std::uint64_t round = 0; round < count; ++round) {
    std::mt19937_64 random(first_seed() + round);
    Bytes file;
    if (round % 2 == 0) {
      file = random_file(random, random_options(random, 200));
    } else {
      RandomJpegOptions options;
      options.coefficients = static_cast<Coefficients>(round % 3);
      file = random_jpeg(random, options);
    }
    const jpeg::Header header = jpeg::parse_header(file);
    const std::size_t data = file.size() - header.data_offset;
    const std::size_t changes = 1 + random() % 8;
    for (std::size_t i = 0; i < changes; ++i)
      file[header.data_offset + random() % data] =
          random() % 3 == 0 ? std::byte{0xFF}
                            : static_cast<std::byte>(0xD0 * (random() % 2) + random() % 256);
    if (round % 5 == 0) file.resize(header.data_offset + random() % (data + 1));
    expect_right(lanes, file, "seed " + std::to_string(first_seed() + round));
    if (!right_index(file, header)) ++damaged;
  }
  EXPECT_GT(damaged, count / 2);
  EXPECT_LT(damaged, count);
}

// SHARD_TEST_PHOTOS=FOLDER: every *.jpg of baseline below it.
TEST(JpegLaneIndex, EqualsTheBuildersForPhotographs) {
  const char* const folder = std::getenv("SHARD_TEST_PHOTOS");
  if (folder == nullptr) GTEST_SKIP() << "SHARD_TEST_PHOTOS names no folder";
  jpeg::LaneIndex lanes;
  std::uint64_t files = 0;
  std::uint64_t entries = 0;
  std::uint64_t alone = 0;
  double most_taken = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".jpg") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto bytes = std::as_bytes(std::span(text));
    const Bytes file(bytes.begin(), bytes.end());
    try {
      const jpeg::Header header = jpeg::parse_header(file);
      const jpeg::LaneIndex::Result result = lanes.build(file, header);
      const std::optional<Bytes> right = right_index(file, header);
      ASSERT_EQ(result.fault == jpeg::Fault::none, right.has_value()) << entry.path();
      if (!right) continue;
      ASSERT_EQ(result.index, *right) << entry.path();
      ++files;
      entries += header.layout.pieces();
      alone += result.read_alone;
      most_taken = std::max(most_taken, 1.0 * result.chunks_taken / result.plan.chunks);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << entry.path() << ": " << error.what();
    }
  }
  std::printf("%llu files, %llu entries, none differs; %llu MCUs read alone, at most %.2f of a pool taken\n",
              static_cast<unsigned long long>(files), static_cast<unsigned long long>(entries),
              static_cast<unsigned long long>(alone), most_taken);
  EXPECT_GT(files, 0U);
}

}  // namespace
}  // namespace shard::testing
