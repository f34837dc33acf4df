// The plan: its shards, and the digest of its source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "convert/plan/plan.hpp"
#include "shard/error.hpp"
#include "support/convert/input_folder.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

using MakePlan = InputFolder;

TEST_F(MakePlan, CutsThePlanIntoShardsThatCoverEachInputOnce) {
  for (int i = 0; i < 7; ++i) write(images_ / std::to_string(i));
  Options options;
  options.images = images_.string();
  options.out = dir_.path() / "out";
  options.samples_per_shard = 3;
  const Plan plan = make_plan(options);
  ASSERT_EQ(plan.shards(), 3U);
  EXPECT_EQ(plan.shard_inputs(0) + plan.shard_inputs(1) + plan.shard_inputs(2), 7U);
  EXPECT_EQ(plan.shard_inputs(2), 1U);
}

TEST_F(MakePlan, RefusesAnOutThatWouldBecomeInput) {
  write(images_ / "a/1");
  Options options;
  options.images = images_.string();
  for (const fs::path& out : {images_, images_ / "a/out", images_ / ".." / "images" / "out"}) {
    options.out = out;
    EXPECT_SHARD_ERROR(make_plan(options), ErrorCode::invalid_argument, "is inside `images`");
  }
  options.images = "/";
  options.out = dir_.path() / "out";
  EXPECT_SHARD_ERROR(make_plan(options), ErrorCode::invalid_argument, "is inside `images`");
}

TEST_F(MakePlan, DigestsKeysAndLabelsOfTheSource) {
  write(images_ / "a/1");
  Options options;
  options.images = images_.string();
  options.out = dir_.path() / "out";
  const std::string before = make_plan(options).source_digest;
  EXPECT_EQ(make_plan(options).source_digest, before);
  write(images_ / "a/notes.txt", "no image");  // and what is no input does not belong to it
  EXPECT_EQ(make_plan(options).source_digest, before);
  fs::create_directories(images_ / "0");
  fs::create_symlink("nowhere", images_ / "0/1");  // a class whose image cannot be read moves the label of a
  EXPECT_NE(make_plan(options).source_digest, before);
}

TEST_F(MakePlan, DigestsSizesButNotTimesOfTheSource) {
  write(images_ / "a/1.png", "one");
  Options options;
  options.images = images_.string();
  options.out = dir_.path() / "out";
  const Plan before = make_plan(options);
  EXPECT_THAT(before.sizes, ElementsAre(3U));
  fs::last_write_time(images_ / "a/1.png", fs::file_time_type::clock::now() - std::chrono::hours(100));
  const Plan at_another_time = make_plan(options);
  EXPECT_EQ(at_another_time.source_digest, before.source_digest);
  EXPECT_NE(at_another_time.times, before.times);
  EXPECT_SHARD_ERROR(before.require_same(0, 3, at_another_time.list.inputs[0].stamp),
                     ErrorCode::invalid_argument, "\"a/1.png\" was replaced or written to");
  write(images_ / "a/1.png", "four");
  const Plan after = make_plan(options);
  EXPECT_NE(after.source_digest, before.source_digest);
  EXPECT_EQ(after.names_digest, before.names_digest);
  EXPECT_SHARD_ERROR(before.require_same(0, 4, 0), ErrorCode::invalid_argument,
                     "\"a/1.png\" has 4 bytes, but had 3");
}

}  // namespace
}  // namespace shard::convert
