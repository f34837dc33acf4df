// Whole conversions of a few small images, in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "shard/convert/convert.hpp"
#include "shard/dataset.hpp"
#include "support/convert/small_conversion.hpp"
#include "support/expect_error.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

using Conversion = SmallConversion;

TEST_F(Conversion, DecodesLargeImagesInTurnsWhereTheMemoryIsForOneOnly) {
  add("images/jpeg_orientation_6.jpg", 20);
  Options scarce = options();
  const image::ImageInfo one = [] {
    std::ifstream in(fs::path(SHARD_TEST_DATA) / "golden/images/jpeg_orientation_6.jpg", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    return image::read_info(std::as_bytes(std::span(text)), 1 << 20);
  }();
  scarce.decode_memory_bytes = std::uint64_t{one.width} * one.height * 6;  // as stored, and upright
  const Summary summary = run(scarce);
  EXPECT_TRUE(summary.complete);
  EXPECT_EQ(summary.samples, 20U);
  EXPECT_EQ(summary.rejects, 0U);
}

TEST_F(Conversion, RejectsAnImageThatNeedsMoreMemoryThanThereIs) {
  add("images/jpeg_420_33x20.jpg", 6);  // in rows
  add("images/jpeg_orientation_6.jpg");
  Options scarce = options();
  scarce.decode_memory_bytes = 1000;
  const Summary summary = run(scarce);
  EXPECT_TRUE(summary.complete);
  EXPECT_EQ(summary.samples, 6U);
  EXPECT_EQ(summary.rejects, 1U);
  EXPECT_THAT(rejects(), HasSubstr("bytes of memory, and this process may use 1000 for images"));
}

TEST_F(Conversion, ClaimGoesWithNeitherRanksNorReplacing) {
  add("images/jpeg_420_33x20.jpg", 2);
  Options claim = options();
  claim.claim = true;
  EXPECT_EQ(run(claim).converted_shards, 1U);
  claim.world_size = 2;
  EXPECT_SHARD_ERROR(run(claim), ErrorCode::invalid_argument, "`claim` and `world_size`");
  claim.world_size = 1;
  claim.refresh = true;
  EXPECT_SHARD_ERROR(run(claim), ErrorCode::invalid_argument, "without `claim`");
}

// Whichever process completes the data set: who says "complete" tells of all of it.
TEST_F(Conversion, TellsOfTheWholeDataSetWhicheverProcessCompletedIt) {
  add("images/jpeg_420_33x20.jpg", 10);
  add("refused/corrupt-jpeg-no-end.jpg", 3);
  for (int round = 0; round < 10; ++round) {
    std::vector<Summary> summaries(2);
    {
      std::vector<std::jthread> ranks;
      for (std::uint32_t rank = 0; rank < 2; ++rank)
        ranks.emplace_back([&, rank] {
          Options mine = options();
          mine.samples_per_shard = 2;
          mine.rank = rank;
          mine.world_size = 2;
          mine.jobs = 1;
          summaries[rank] = run(mine);
        });
    }
    EXPECT_TRUE(summaries[0].complete || summaries[1].complete);
    for (const Summary& summary : summaries) {
      if (!summary.complete) continue;
      EXPECT_EQ(summary.rejects, 3U);
      EXPECT_EQ(summary.samples, 10U);
      EXPECT_EQ(summary.inputs, 13U);
      EXPECT_EQ(summary.shards, Dataset::open(dir_.path() / "out").info().shards.size());
    }
    const std::string csv = rejects();
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4) << csv;
    fs::remove_all(dir_.path() / "out");
  }
}

}  // namespace
}  // namespace shard::convert
