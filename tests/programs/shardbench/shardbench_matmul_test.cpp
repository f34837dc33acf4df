// shardbench matmul, as a user runs it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "commands/matmul/matmul_bench.hpp"
#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

TEST(MatmulProgram, ReportsEverySampleBesideItsLimit) {
  const testing::TempDir dir;
  const std::string json = (dir.path() / "matmul.json").string();
  const testing::ProgramResult run = testing::shardbench(
      "matmul --sizes 32,100 --repeat 2 --seconds 0.001 --device host --threads 2 --json " + json);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("GFLOP/s"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("The GPU was left out: --device host"), std::string::npos) << run.output;
  std::ifstream in(json);
  const auto report = nlohmann::json::parse(in);
  EXPECT_EQ(report["complete"], true);
  EXPECT_EQ(report["threads"], 2);
  ASSERT_EQ(report["cases"].size(), 2U);
  EXPECT_EQ(report["cases"][1]["size"], 100);
  for (const auto& one : report["cases"]) {
    EXPECT_LE(one["error"].get<double>(), one["error_bound"].get<double>());
    ASSERT_EQ(one["samples"].size(), 2U);
    double low = 1e300, high = 0;
    for (const auto& sample : one["samples"]) {
      EXPECT_GT(sample["limit_flops_per_second"], 0);
      EXPECT_GT(sample["multiply_seconds"], 0);
      EXPECT_EQ(sample["upload_seconds"], 0);
      low = std::min(low, sample["flops_per_second"].get<double>());
      high = std::max(high, sample["flops_per_second"].get<double>());
    }
    EXPECT_GE(one["flops_per_second"].get<double>(), low);
    EXPECT_LE(one["flops_per_second"].get<double>(), high);
  }
}

TEST(MatmulProgram, EndsWithTwoOnBadUsage) {
  const testing::ProgramResult large = testing::shardbench("matmul --sizes 64,20000");
  EXPECT_EQ(large.exit_code, 2);
  EXPECT_NE(large.output.find("--sizes 20000: expected 1 to 16384"), std::string::npos) << large.output;
  EXPECT_EQ(testing::shardbench("matmul --sizes 0").exit_code, 2);
  EXPECT_EQ(testing::shardbench("matmul --sizes many").exit_code, 2);
  EXPECT_EQ(testing::shardbench("matmul --device tpu").exit_code, 2);
  std::string absent;
  if (make_gpu_multipliers(absent).empty()) {
    const testing::ProgramResult cuda = testing::shardbench("matmul --sizes 8 --device cuda");
    EXPECT_EQ(cuda.exit_code, 2);
    EXPECT_NE(cuda.output.find("--device cuda: " + absent), std::string::npos) << cuda.output;
  }
}

}  // namespace
}  // namespace shard::bench
