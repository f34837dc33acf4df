// A folder of shards as one data set.
#include <gtest/gtest.h>

#include <thread>

#include "shard/dataset.hpp"
#include "support/expect_error.hpp"
#include "support/format/dataset_text.hpp"
#include "support/format/shard_samples.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

class Folder : public ::testing::Test {
 protected:
  // Shards of 3, 1 and 4 samples.
  void fill() {
    DatasetInfo info = example();
    const ShardWriterOptions options{info};
    info.shards.clear();
    for (std::uint64_t n : {3U, 1U, 4U})
      info.shards.push_back(write_shard(dir_.path() / ("s" + std::to_string(n)), options, n));
    info.inputs = 9;
    publish_file(dir_.path() / kDatasetFile, serialize_dataset(info));
  }
  TempDir dir_;
};

TEST_F(Folder, SamplesAreLocatedByBinarySearch) {
  fill();
  const Dataset dataset = Dataset::open(dir_.path());
  ASSERT_EQ(dataset.size(), 8U);
  const std::pair<std::uint32_t, std::uint64_t> expected[] = {{0, 0}, {0, 1}, {0, 2}, {1, 0},
                                                              {2, 0}, {2, 1}, {2, 2}, {2, 3}};
  for (std::uint64_t i = 0; i < 8; ++i) {
    const auto found = dataset.locate(i);
    EXPECT_EQ(std::pair(found.shard, found.sample), expected[i]) << i;
    EXPECT_EQ(dataset.shard(found.shard).key(found.sample), sample_key(found.sample));
  }
  EXPECT_SHARD_ERROR(dataset.locate(8), ErrorCode::invalid_argument, "has 8, numbered");
  EXPECT_SHARD_ERROR(dataset.shard(3), ErrorCode::invalid_argument, "has 3, numbered");
}

TEST_F(Folder, SamplesAreReadByTheirIndex) {
  fill();
  const Dataset dataset = Dataset::open(dir_.path());
  const DatasetInfo& info = dataset.info();
  std::vector<std::byte> sample(info.spec.size_bytes());
  for (std::uint64_t i = 0; i < 8; ++i) {
    const std::uint64_t in_shard = dataset.locate(i).sample;
    dataset.read(i, sample);
    EXPECT_EQ(sample, sample_bytes(info.spec, in_shard)) << i;
    EXPECT_EQ(dataset.key(i), sample_key(in_shard)) << i;
    EXPECT_EQ(dataset.label(i), dataset.shard(dataset.locate(i).shard).label(in_shard)) << i;
  }
  EXPECT_SHARD_ERROR(dataset.read(8, sample), ErrorCode::invalid_argument, "sample 8 does not exist");
  EXPECT_SHARD_ERROR(dataset.label(8), ErrorCode::invalid_argument, "sample 8 does not exist");
  EXPECT_SHARD_ERROR(dataset.key(8), ErrorCode::invalid_argument, "sample 8 does not exist");
  sample.pop_back();
  EXPECT_SHARD_ERROR(dataset.read(0, sample), ErrorCode::invalid_argument, "");
}

TEST_F(Folder, CopiesShareTheMappingsAndKeepThem) {
  fill();
  std::optional<Dataset> first = Dataset::open(dir_.path());
  const Dataset copy = *first;
  EXPECT_EQ(&copy.shard(0), &first->shard(0));
  EXPECT_EQ(&copy.info(), &first->info());
  const ShardReader& reader = copy.shard(1);
  first.reset();
  EXPECT_EQ(&copy.shard(1), &reader);
  EXPECT_EQ(copy.key(0), sample_key(0));
}

TEST_F(Folder, AShardAloneIsADataSet) {
  fill();
  const Dataset whole = Dataset::open(dir_.path());
  const Dataset alone = Dataset::open(dir_.path() / "s4");
  EXPECT_TRUE(alone.is_lone_shard());
  EXPECT_FALSE(whole.is_lone_shard());
  EXPECT_EQ(alone.path(), dir_.path() / "s4");
  EXPECT_EQ(alone.folder(), dir_.path());
  EXPECT_EQ(alone.size(), 4U);
  EXPECT_EQ(alone.info().inputs, 4U);
  EXPECT_TRUE(alone.info().classes.empty());
  EXPECT_EQ(difference(alone.info(), whole.info()), std::nullopt);
  ASSERT_EQ(alone.info().shards.size(), 1U);
  EXPECT_EQ(alone.info().shards[0], whole.info().shards[2]);
  std::vector<std::byte> one(alone.info().spec.size_bytes());
  std::vector<std::byte> other(one.size());
  for (std::uint64_t i = 0; i < 4; ++i) {
    alone.read(i, one);
    whole.read(4 + i, other);
    EXPECT_EQ(one, other) << i;
    EXPECT_EQ(alone.key(i), whole.key(4 + i));
  }
  // Also by a name without a folder.
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir_.path());
  const Dataset here = Dataset::open("s3");
  std::filesystem::current_path(before);
  EXPECT_EQ(here.size(), 3U);
  EXPECT_EQ(here.key(2), sample_key(2));
  EXPECT_EQ(here.shard(0).change(), "");
}

TEST_F(Folder, AFileThatIsNoShardIsRefused) {
  write_bytes(dir_.path() / "photo.jpg", std::vector<std::byte>(100, std::byte{7}));
  EXPECT_SHARD_ERROR(Dataset::open(dir_.path() / "photo.jpg"), ErrorCode::corrupt, "photo.jpg");
}

TEST_F(Folder, ShardsAreOpenedOnceWhateverTheThreads) {
  fill();
  const Dataset dataset = Dataset::open(dir_.path());
  std::vector<const ShardReader*> found(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] { found[t] = &dataset.shard(1); });
  for (std::thread& thread : threads) thread.join();
  for (const ShardReader* reader : found) EXPECT_EQ(reader, found[0]);
}

TEST_F(Folder, StateFollowsTheFiles) {
  const auto touch = [&](const std::string& name) { publish_file(dir_.path() / name, "x"); };
  EXPECT_EQ(folder_state(dir_.path() / "none"), FolderState::absent);
  EXPECT_EQ(folder_state(dir_.path()), FolderState::empty);
  write_bytes(dir_.path() / ".s0.safetensors.123.0123456789abcdef.part", {});
  EXPECT_EQ(folder_state(dir_.path()), FolderState::empty) << "a temporary of a killed run is ours";
  touch("photo.jpg");
  EXPECT_EQ(folder_state(dir_.path()), FolderState::foreign);
  EXPECT_EQ(folder_state(dir_.path() / "photo.jpg"), FolderState::foreign);
  touch(kPlanFile);
  EXPECT_EQ(folder_state(dir_.path()), FolderState::incomplete);
  touch(kDatasetFile);
  EXPECT_EQ(folder_state(dir_.path()), FolderState::complete);
}

TEST_F(Folder, OpeningSaysWhatIsMissing) {
  EXPECT_SHARD_ERROR(Dataset::open(dir_.path() / "none"), ErrorCode::not_found, "does not exist");
  EXPECT_SHARD_ERROR(Dataset::open(dir_.path()), ErrorCode::not_found, "not a data set");
  publish_file(dir_.path() / kPlanFile, "{}");
  EXPECT_SHARD_ERROR(Dataset::open(dir_.path()), ErrorCode::not_found, "run the same shardify command again");
  publish_file(dir_.path() / kDatasetFile, "{}\n");
  EXPECT_SHARD_ERROR(Dataset::open(dir_.path()), ErrorCode::corrupt, dir_.path().native());
}

}  // namespace
}  // namespace shard
