// Shards of a plan that others distribute.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "shard/convert/convert.hpp"
#include "shard/convert/work_plan.hpp"
#include "shard/dataset.hpp"
#include "support/convert/small_conversion.hpp"
#include "support/expect_error.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

using WorkPlanTest = SmallConversion;

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST_F(WorkPlanTest, ShardsAreConvertedInAnyOrderAndAlsoAtOnce) {
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

}  // namespace
}  // namespace shard::convert
