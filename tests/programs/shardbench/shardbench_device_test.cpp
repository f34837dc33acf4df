// shardbench device: reads what the kernel says as it says it, and goes on where it says nothing.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/cpu_facts.hpp"
#include "harness/filesystem_facts.hpp"
#include "harness/gpu_facts.hpp"
#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(PcieLinks, AreReadAsTheKernelWritesThem) {
  const testing::TempDir dir;
  write(dir.path() / "current_link_speed", "2.5 GT/s PCIe\n");
  write(dir.path() / "current_link_width", "8\n");
  write(dir.path() / "max_link_speed", "32.0 GT/s PCIe\n");
  write(dir.path() / "max_link_width", "16\n");
  const auto now = read_pcie_link(dir.path(), "current");
  const auto most = read_pcie_link(dir.path(), "max");
  EXPECT_EQ(now["generation"], 1);
  EXPECT_EQ(now["width"], 8);
  EXPECT_DOUBLE_EQ(now["bytes_per_second"], 2e9);
  EXPECT_EQ(most["generation"], 5);
  EXPECT_EQ(most["width"], 16);
  EXPECT_NEAR(most["bytes_per_second"].get<double>(), 63.015e9, 1e6);
}

TEST(PcieLinks, AreNotKnownWhereTheKernelDoesNotSay) {
  const testing::TempDir dir;
  write(dir.path() / "current_link_speed", "Unknown\n");
  write(dir.path() / "current_link_width", "255\n");
  const nlohmann::ordered_json unknown{{"generation", 0}, {"width", 0}, {"bytes_per_second", 0.0}};
  EXPECT_EQ(read_pcie_link(dir.path(), "current"), unknown);
  EXPECT_EQ(read_pcie_link(dir.path(), "max"), unknown);
}

TEST(CpuCaches, AreSortedByLevel) {
  const testing::TempDir dir;
  write(dir.path() / "index0/level", "3\n");
  write(dir.path() / "index0/type", "Unified\n");
  write(dir.path() / "index0/size", "36M\n");
  write(dir.path() / "index1/level", "1\n");
  write(dir.path() / "index1/type", "Data\n");
  write(dir.path() / "index1/size", "48K\n");
  const auto caches = read_caches(dir.path());
  ASSERT_EQ(caches.size(), 2U);
  EXPECT_EQ(caches[0]["type"], "Data");
  EXPECT_EQ(caches[0]["size_bytes"], 48U << 10U);
  EXPECT_EQ(caches[1]["level"], 3);
  EXPECT_EQ(caches[1]["size_bytes"], 36U << 20U);
}

TEST(FilesystemFacts, SayWhatIsFreeAndLeaveNothingBehind) {
  const testing::TempDir dir;
  const auto facts = filesystem_facts(dir.path());
  EXPECT_FALSE(facts.contains("problem")) << facts;
  EXPECT_EQ(facts["size_bytes"], fs::space(dir.path()).capacity);
  EXPECT_LE(facts["free_bytes"], facts["size_bytes"]);
  EXPECT_GT(facts["block_bytes"], 0U);
  EXPECT_NE(facts["direct"], "");
  EXPECT_TRUE(fs::is_empty(dir.path()));
  EXPECT_NE(filesystem_facts(dir.path() / "absent")["problem"].get<std::string>().find("No such file"),
            std::string::npos);
}

TEST(DeviceProgram, DescribesTheMachineAndNamesThePathLeftOut) {
  const testing::TempDir dir;
  const fs::path json = dir.path() / "device.json";
  const testing::ProgramResult run = testing::shardbench(
      "device " + dir.path().string() + " " + (dir.path() / "absent").string() + " --json " + json.string());
  EXPECT_EQ(run.exit_code, 1) << run.output;
  EXPECT_NE(run.output.find("left out: No such file"), std::string::npos) << run.output;
  std::ifstream in(json);
  const auto report = nlohmann::json::parse(in);
  EXPECT_EQ(report["benchmark"], "device");
  EXPECT_EQ(report["complete"], true);
  ASSERT_EQ(report["filesystems"].size(), 2U);
  EXPECT_GT(report["filesystems"][0]["size_bytes"], 0);
  EXPECT_TRUE(report["filesystems"][1].contains("problem"));
  EXPECT_FALSE(report["cpu"]["simd"].get<std::string>().empty());
  EXPECT_GT(report["memory"]["registered_budget_bytes"], 0);
  const auto gpu = gpu_report();
  EXPECT_EQ(report["cuda"]["devices"].size(), gpu["devices"].size());
  EXPECT_EQ(gpu["devices"].empty(), run.output.find("no CUDA device") != std::string::npos) << run.output;
  EXPECT_TRUE(!gpu["devices"].empty() || gpu["absent"] != "");
}

TEST(DeviceProgram, PrintsNothingButJsonWhenThatGoesToStandardOutput) {
  const testing::ProgramResult run = testing::shardbench("device --json -");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(run.output)["benchmark"], "device");
}

}  // namespace
}  // namespace shard::bench
