// Rows of shardbench tiers say what they hold.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "commands/tiers/tiers_bench.hpp"
#include "harness/csv.hpp"
#include "sections.hpp"
#include "shard/error.hpp"
#include "support/expect_error.hpp"

namespace shard::bench {
namespace {

TierTask task(const std::string& candidate, const std::function<void()>& verify, double rate) {
  TierTask task;
  task.row.tier = "t";
  task.row.candidate = candidate;
  task.row.dataset = "u8";
  task.row.bytes_per_sample = 1000;
  task.verify = verify;
  task.measure = [rate](std::string& limit_is) {
    limit_is = "this test";
    return TierSample{rate, 2 * rate, 1};
  };
  return task;
}

TEST(RunTasks, DoesNotMeasureACandidateThatIsWrongAndGoesOnAfterOneThatFails) {
  std::vector<TierTask> tasks;
  tasks.push_back(task(
      "wrong", [] { throw Error(ErrorCode::corrupt, "another sample"); }, 5));
  tasks.push_back(task(
      "right", [] {}, 7));
  tasks.push_back(task(
      "vanishing", [] {}, 7));
  unsigned calls = 0;
  tasks[2].measure = [&calls](std::string&) -> TierSample {
    if (++calls == 2) throw Error(ErrorCode::io, "the disk is gone");
    return {1, 1, 1};
  };
  const std::atomic<bool> cancel{false};
  std::vector<unsigned> repeats;
  run_tasks(tasks, 3, cancel, [&](unsigned done) { repeats.push_back(done); });
  EXPECT_EQ(repeats, (std::vector<unsigned>{0, 1, 2, 3}));
  EXPECT_EQ(tasks[0].row.problem, "another sample");
  EXPECT_TRUE(tasks[0].row.samples.empty());
  EXPECT_EQ(tasks[1].row.samples.size(), 3U);
  EXPECT_EQ(rate_of(tasks[1].row), 7);
  EXPECT_EQ(limit_of(tasks[1].row), 14);
  EXPECT_EQ(tasks[2].row.problem, "the disk is gone");
  EXPECT_EQ(calls, 2U);
  const std::atomic<bool> cancelled{true};
  EXPECT_SHARD_ERROR(run_tasks(tasks, 1, cancelled, [](unsigned) {}), ErrorCode::cancelled, "removed");
}

TierRow row(const std::string& tier, TierCache cache, bool decodes, double bytes, double rate) {
  TierRow one;
  one.tier = tier;
  one.cache = cache;
  one.decodes = decodes;
  one.dataset = "u8";
  one.candidate = decodes ? "decode on the fly" : "loader, staged";
  one.bytes_per_sample = bytes;
  one.samples = {{rate, 0, 1}};
  return one;
}

TEST(TierRows, AreComparedWithTheDecodingOfTheirTierAndCache) {
  const std::vector<TierRow> rows{
      row("disk", TierCache::cold, true, 100, 50),     row("disk", TierCache::warm, true, 100, 200),
      row("disk", TierCache::cold, false, 150, 500),   row("disk", TierCache::warm, false, 150, 4000),
      row("disk", TierCache::around, false, 150, 600), row("ram", TierCache::warm, false, 150, 9000)};
  EXPECT_EQ(speed_up(rows[2], rows), 10);
  EXPECT_EQ(speed_up(rows[3], rows), 20);
  EXPECT_EQ(speed_up(rows[4], rows), 12);  // of the cold one
  EXPECT_EQ(speed_up(rows[5], rows), 0);   // its tier has none
  const std::string need = need_text(tiers_json(rows), 1000);
  EXPECT_NE(need.find("precomputed samples from: disk, warm (loader, staged of u8); ram, warm"),
            std::string::npos)
      << need;
  EXPECT_NE(need.find("decoding on the fly from: none of these"), std::string::npos) << need;
  EXPECT_NE(need.find("starves with both on: disk, cold; disk, O_DIRECT"), std::string::npos) << need;
  EXPECT_EQ(need_text(tiers_json(rows), 0), "");
  // 200 images/s of 150 bytes each as samples.
  EXPECT_EQ(break_even(200, 150, 100), 30000);
  EXPECT_EQ(break_even(200, 70, 100), 0);
  const std::string text = to_text(tiers_section({{"rows", tiers_json(rows)}}));
  EXPECT_NE(text.find("decodes 200 images/s"), std::string::npos) << text;
  EXPECT_NE(text.find("At most 20 times what decoding on the fly gives"), std::string::npos) << text;
  EXPECT_NE(to_text(tiers_section({})).find("is not known"), std::string::npos);
  const std::string csv = to_csv({{"rows", tiers_json(rows)}});
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 7);
  EXPECT_NE(csv.find("disk,warm,false,u8,\"loader, staged\",false,150.0,4000.0"), std::string::npos) << csv;
}

}  // namespace
}  // namespace shard::bench
