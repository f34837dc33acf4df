// shardbench transform, as a user runs it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

TEST(TransformProgram, ReportsTheChosenCasesBesideNoOperation) {
  const testing::TempDir dir;
  const std::string json = (dir.path() / "transform.json").string();
  const testing::ProgramResult run = testing::shardbench(
      "transform --device host --side 48 --size 32 --batch-size 4 --repeat 3 --seconds 0.001 --cases "
      "invert,aug_mix --json " +
      json);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("Limit of the memory: "), std::string::npos) << run.output;
  std::ifstream in(json);
  const auto report = nlohmann::json::parse(in);
  EXPECT_EQ(report["complete"], true);
  EXPECT_EQ(report["stored_bytes"], 48 * 48 * 3);
  EXPECT_EQ(report["delivered_bytes"], 32 * 32 * 3 * 2);
  EXPECT_EQ(report["memory_bytes_per_second"].size(), 3U);
  ASSERT_EQ(report["cases"].size(), 3U);
  const char* const names[] = {"no operation", "invert", "aug_mix"};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& one = report["cases"][i];
    EXPECT_EQ(one["name"], names[i]);
    ASSERT_EQ(one["samples_per_second"].size(), 3U);
    for (const double rate : one["samples_per_second"]) EXPECT_GT(rate, 0);
    EXPECT_GT(one["draws_per_second"], 0);
  }
}

TEST(TransformProgram, RunsEveryCase) {
  const testing::ProgramResult run = testing::shardbench(
      "transform --device host --side 64 --size 48 --batch-size 2 --repeat 1 --seconds 0 --dtype f32");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  for (const char* name :
       {"color_jitter (hue)", "affine (bilinear)", "three_augment, color_jitter", "the same, solarize 0.2"})
    EXPECT_NE(run.output.find(name), std::string::npos) << name << run.output;
}

TEST(TransformProgram, SaysWhichCaseDoesNotFit) {
  const testing::ProgramResult run = testing::shardbench(
      "transform --device host --side 32 --size 32 --batch-size 1 --repeat 1 --seconds 0 --cases "
      "perspective,nothing");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.output.find("--cases \"nothing\": no case begins so; beside the first, which is always "
                            "measured, there are: color_jitter"),
            std::string::npos)
      << run.output;
  EXPECT_EQ(testing::shardbench("transform --device host --side 8").exit_code, 2);
  EXPECT_EQ(testing::shardbench("transform --device host --batch-size 0").exit_code, 2);
  EXPECT_EQ(testing::shardbench("transform --device host --dtype u8").exit_code, 2);
}

}  // namespace
}  // namespace shard::bench
