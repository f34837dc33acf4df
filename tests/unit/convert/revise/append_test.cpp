// Images that are appended to a data set.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "shard/convert/convert.hpp"
#include "shard/dataset.hpp"
#include "support/convert/small_conversion.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

using Append = SmallConversion;

TEST_F(Append, AddsImagesAndTellsOfThemAlone) {
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

TEST_F(Append, IsForOneProcessAndNotForReplacing) {
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

}  // namespace
}  // namespace shard::convert
