// Whole conversions of a few small images, in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "expect_error.hpp"
#include "shard/convert/convert.hpp"
#include "shard/convert/work_plan.hpp"
#include "shard/dataset.hpp"
#include "temp_dir.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Run : public ::testing::Test {
 protected:
  // Copies a golden image to a/NAME, b/NAME in turn.
  void add(const std::string& golden, int copies = 1) {
    for (int i = 0; i < copies; ++i) {
      const fs::path folder = images_ / (count_ % 2 == 0 ? "a" : "b");
      fs::create_directories(folder);
      fs::copy_file(fs::path(SHARD_TEST_DATA) / "golden" / golden,
                    folder / (std::to_string(100 + count_++) + fs::path(golden).extension().string()));
    }
  }
  Options options() const {
    Options options;
    options.images = images_.string();
    options.out = dir_.path() / "out";
    options.preprocess.resize_short = 8;
    options.preprocess.crop = image::Size{8, 8};
    options.jobs = 4;
    return options;
  }
  std::string rejects() const {
    std::ifstream in(dir_.path() / "out" / kRejectsFile);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  testing::TempDir dir_;
  fs::path images_ = dir_.path() / "images";
  int count_ = 0;
};

TEST_F(Run, DecodesLargeImagesInTurnsWhereTheMemoryIsForOneOnly) {
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

TEST_F(Run, RejectsAnImageThatNeedsMoreMemoryThanThereIs) {
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

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST_F(Run, ShardsOfAWorkPlanAreConvertedInAnyOrderAndAlsoAtOnce) {
  add("images/jpeg_420_33x20.jpg", 9);
  add("refused/corrupt-jpeg-no-end.jpg");
  Options by_one = options();
  by_one.samples_per_shard = 2;
  by_one.jobs = 1;
  Options by_plan = by_one;
  by_plan.out = dir_.path() / "by plan";
  const Summary whole = run(by_one);
  const WorkPlan plan(by_plan);
  EXPECT_FALSE(fs::exists(by_plan.out));
  EXPECT_EQ(plan.shards(), 5U);
  EXPECT_EQ(plan.inputs(), 10U);
  EXPECT_EQ(plan.digest(), WorkPlan(by_plan).digest());
  EXPECT_SHARD_ERROR(plan.convert_shard(5), ErrorCode::invalid_argument, "there is no shard 5");
  EXPECT_SHARD_ERROR(plan.finish(), ErrorCode::invalid_argument, "shard 0 of 5");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&plan] {
      for (const std::uint64_t shard : {3U, 1U, 4U, 0U, 2U}) plan.convert_shard(shard);
    });
  for (std::thread& thread : threads) thread.join();
  const ShardResult again = plan.convert_shard(4);
  EXPECT_TRUE(again.was_complete);
  EXPECT_EQ(again.samples + again.rejects, 2U);
  const Summary summary = plan.finish();
  EXPECT_TRUE(summary.complete);
  EXPECT_EQ(summary.samples, whole.samples);
  EXPECT_EQ(summary.rejects, 1U);
  EXPECT_TRUE(plan.finish().was_complete);
  EXPECT_TRUE(plan.convert_shard(0).was_complete);
  for (const auto& entry : fs::directory_iterator(by_one.out))
    EXPECT_EQ(bytes_of(entry.path()), bytes_of(by_plan.out / entry.path().filename())) << entry.path();
  fs::remove(by_plan.out / "shard-00003.safetensors");
  EXPECT_SHARD_ERROR(plan.finish(), ErrorCode::invalid_argument, "shard 3 ");
  EXPECT_FALSE(plan.convert_shard(3).was_complete);
  EXPECT_TRUE(plan.finish().complete);
}

TEST_F(Run, ClaimGoesWithNeitherRanksNorReplacing) {
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

TEST_F(Run, AppendAddsImagesAndTellsOfThemAlone) {
  add("images/jpeg_420_33x20.jpg", 6);
  run(options());
  const Dataset before = Dataset::open(options().out);
  images_ = dir_.path() / "more";
  add("images/jpeg_420_33x20.jpg", 3);
  add("refused/corrupt-jpeg-no-end.jpg");
  Options more = options();
  more.append = true;
  const Summary summary = run(more);
  EXPECT_TRUE(summary.complete);
  EXPECT_FALSE(summary.was_complete);
  EXPECT_EQ(summary.inputs, 4U);
  EXPECT_EQ(summary.samples, 3U);
  EXPECT_EQ(summary.rejects, 1U);
  EXPECT_EQ(summary.shards, 1U);
  EXPECT_EQ(summary.converted, 3U);
  const Dataset after = Dataset::open(more.out);
  EXPECT_EQ(after.size(), 9U);
  EXPECT_EQ(after.info().parts.size(), 2U);
  // Opened before, and its shards were not read yet.
  ASSERT_EQ(before.size(), 6U);
  for (std::uint64_t i = 0; i < before.size(); ++i) EXPECT_EQ(before.key(i), after.key(i));
  const Summary again = run(more);
  EXPECT_TRUE(again.was_complete);
  EXPECT_EQ(again.samples, 3U);
  EXPECT_EQ(again.rejects, 1U);
  EXPECT_EQ(again.converted, 0U);
}

TEST_F(Run, AppendIsForOneProcessAndNotForReplacing) {
  Options more = options();
  more.append = true;
  more.world_size = 2;
  EXPECT_SHARD_ERROR(more.check(), ErrorCode::invalid_argument, "`append` with several processes");
  more.world_size = 1;
  more.refresh = true;
  EXPECT_SHARD_ERROR(more.check(), ErrorCode::invalid_argument, "`append` and `refresh` exclude each other");
  more.refresh = false;
  add("images/jpeg_420_33x20.jpg");
  EXPECT_SHARD_ERROR(run(more), ErrorCode::not_found, "holds no data set");
  EXPECT_FALSE(fs::exists(more.out));
}

// Whichever process completes the data set: who says "complete" tells of all of it.
TEST_F(Run, TellsOfTheWholeDataSetWhicheverProcessCompletedIt) {
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
