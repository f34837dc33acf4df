// shardbench memory, as a user runs it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "data/load_data.hpp"
#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

class MemoryProgram : public ::testing::Test {
 protected:
  void SetUp() override { make_sparse_dataset(data(), 40, 2, {DType::u8, Layout::nhwc, 3, 48, 48}); }
  std::string data() const { return (dir_.path() / "data").string(); }
  std::string json() const { return (dir_.path() / "memory.json").string(); }
  nlohmann::json report() const {
    std::ifstream in(json());
    return nlohmann::json::parse(in);
  }

 private:
  testing::TempDir dir_;
};

TEST_F(MemoryProgram, ReportsPredictionMeasurementAndLimitOfEachBatchSize) {
  const testing::ProgramResult run = testing::shardbench(
      "memory " + data() +
      " --device host --transport staged --batch-sizes 1,16 --prefetch 2 --dtype f32 --json " + json());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("transport staged (asked for)"), std::string::npos) << run.output;
  const auto found = report();
  EXPECT_EQ(found["complete"], true);
  EXPECT_EQ(found["delivered_bytes"], 4 * 48 * 48 * 3);
  ASSERT_EQ(found["cases"].size(), 2U);
  const auto& one = found["cases"][1];
  EXPECT_EQ(one["transport"], "staged");
  ASSERT_EQ(one["memory"].size(), 3U);
  // Labels, ids and mask take 256 bytes each at least.
  EXPECT_EQ(one["memory"]["device"]["measured_bytes"], 3 * (16 * 48 * 48 * 3 * 5 + 3 * 256));
  EXPECT_EQ(one["memory"]["pinned"]["measured_bytes"], 3 * (16 * 48 * 48 * 3 + 3 * 256));
  EXPECT_EQ(one["memory"]["pinned"]["limit_bytes"], 1U << 30U);
  for (const auto& [kind, row] : one["memory"].items()) {
    const double predicted = row["predicted_bytes"];
    const double measured = row["measured_bytes"];
    EXPECT_NEAR(row["difference"].get<double>(), std::abs(measured - predicted) / predicted, 1e-12);
    EXPECT_GT(row["limit_bytes"].get<double>(), measured);
    // What differs by more than 1 % is said.
    const std::string note = "batch 16, " + kind + ": ";
    EXPECT_EQ(run.output.find(note) != std::string::npos, row["difference"].get<double>() > 0.01)
        << run.output;
  }
}

TEST_F(MemoryProgram, EndsWithOneWhenABatchSizeIsLeftOutAndWithTwoOnBadUsage) {
  const testing::ProgramResult part = testing::shardbench(
      "memory " + data() +
      " --device host --transport staged --batch-sizes 2,4000 --pinned-bytes 1MiB --json " + json());
  EXPECT_EQ(part.exit_code, 1) << part.output;
  EXPECT_NE(part.output.find("batch 4,000 was left out: "), std::string::npos) << part.output;
  EXPECT_TRUE(report()["cases"][1].contains("problem"));
  EXPECT_TRUE(report()["cases"][0].contains("memory"));
  const auto refused = [&](const std::string& options, const std::string& piece) {
    const testing::ProgramResult run = testing::shardbench("memory " + data() + " --device host " + options);
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_NE(run.output.find(piece), std::string::npos) << run.output;
  };
  refused("--batch-sizes 0", "--batch-sizes 0: expected 1 to 65536");
  refused("--transport pigeon", "--transport \"pigeon\"");
  refused("--crop center:100", "crop");
  refused("--dtype f12", "--dtype \"f12\"");
  EXPECT_EQ(testing::shardbench("memory " + data() + "-absent").exit_code, 2);
}

}  // namespace
}  // namespace shard::bench
