// shardbench upload, as a user runs it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

TEST(UploadProgram, ReportsRatesAndTheShareOfAStep) {
  const testing::TempDir dir;
  const std::string json = (dir.path() / "upload.json").string();
  const testing::ProgramResult run = testing::shardbench(
      "upload --device host --memory 2MiB --chunks 64KiB --batch-sizes 1,4 --sample-bytes 10000 --repeat 3 "
      "--seconds 0.001 "
      "--step-ms 2 --json " +
      json);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("every row is a copy in memory"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("registered, batched"), std::string::npos) << run.output;
  std::ifstream in(json);
  const auto report = nlohmann::json::parse(in);
  EXPECT_EQ(report["complete"], true);
  EXPECT_EQ(report["limit_bytes_per_second"].size(), 3U);
  ASSERT_EQ(report["cases"].size(), 7U);
  for (const auto& one : report["cases"]) EXPECT_EQ(one["samples_bytes_per_second"].size(), 3U);
  ASSERT_EQ(report["batches"].size(), 2U);
  for (const auto& one : report["batches"]) {
    const double seconds = one["seconds"];
    EXPECT_GT(seconds, 0);
    EXPECT_NEAR(one["share_of_step"].get<double>(), seconds / (seconds + 0.002), 1e-12);
    EXPECT_NEAR(one["share_beside_step"].get<double>(), seconds / 0.002, 1e-9);
  }
}

TEST(UploadProgram, EndsWithTwoOnBadUsage) {
  const auto refused = [](const std::string& options, const std::string& piece) {
    const testing::ProgramResult run = testing::shardbench("upload --device host " + options);
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_NE(run.output.find(piece), std::string::npos) << run.output;
  };
  refused("--memory 1MiB --chunks 2MiB", "--chunks 2097152: expected 1 to 1048576");
  refused("--step-ms 0", "--step-ms");
  refused("--chunks some", "--chunks");
}

}  // namespace
}  // namespace shard::bench
