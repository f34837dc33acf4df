// Samples and images of a tier, and its copies.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "feeds/tier_data.hpp"
#include "shard/error.hpp"
#include "support/expect_error.hpp"
#include "support/programs/bench_dataset.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

TEST(MatchImages, NamesTheFirstThatIsNotThere) {
  const testing::TempDir dir;
  testing::make_photos(dir.path() / "photos", 6);
  testing::make_dataset(dir.path() / "photos", dir.path() / "data");
  const Dataset dataset = Dataset::open(dir.path() / "data");
  EXPECT_EQ(match_images(dataset, dir.path() / "photos", 0).paths.size(), 6U);
  const TierImages three = match_images(dataset, dir.path() / "photos", 3);
  EXPECT_EQ(three.samples, (std::vector<std::uint64_t>{0, 2, 4}));
  fs::remove(dir.path() / "photos" / three.paths[1]);
  EXPECT_SHARD_ERROR(match_images(dataset, dir.path() / "photos", 3), ErrorCode::not_found, three.paths[1]);
}

TEST(TierData, CopiesBelowTheTierAndRemovesItAndRefusesWhatHasNoRoom) {
  const testing::TempDir dir;
  const std::atomic<bool> cancel{false};
  testing::make_photos(dir.path() / "photos", 4);
  testing::make_dataset(dir.path() / "photos", dir.path() / "data");
  TierImages images = match_images(Dataset::open(dir.path() / "data"), dir.path() / "photos", 0);
  const fs::path tier = dir.path() / "tier";
  const auto make = [&] {
    return TierData({"t", tier}, {dir.path() / "data"}, images, cancel, [](const std::string&) {});
  };
  EXPECT_SHARD_ERROR(make(), ErrorCode::not_found, "is it mounted?");
  fs::create_directory(tier);
  {
    const TierData data(TierPlace{"t", tier}, {dir.path() / "data"}, images, cancel,
                        [](const std::string&) {});
    EXPECT_FALSE(fs::is_empty(tier));
    EXPECT_EQ(Dataset::open(data.datasets()[0]).size(), 4U);
    for (const fs::path& file : data.image_files()) EXPECT_TRUE(fs::exists(file)) << file;
    for (const fs::path& file : data.shard_files(0)) EXPECT_TRUE(file.string().starts_with(tier.string()));
  }
  EXPECT_TRUE(fs::is_empty(tier));
  images.bytes = std::uint64_t{1} << 60U;
  EXPECT_SHARD_ERROR(make(), ErrorCode::resource, "give a smaller data set or --count");
  EXPECT_TRUE(fs::is_empty(tier));
}

}  // namespace
}  // namespace shard::bench
