// What every subcommand of shardbench that measures can do: --csv, --plot and --quick.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/programs/bench_dataset.hpp"
#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

struct Command {
  std::string arguments;
  std::string column;   // of the CSV
  std::string samples;  // JSON pointer to a list of which --quick leaves 3
  std::size_t rows = 0;
  std::string bar;  // of the chart
};

class Outputs : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::make_photos(photos(), 4);
    testing::make_dataset(photos(), data());
    fs::create_directory(out());
  }
  fs::path photos() const { return dir_.path() / "photos"; }
  fs::path data() const { return dir_.path() / "data"; }
  fs::path out() const { return dir_.path() / "out"; }
  fs::path file(const std::string& name) const { return dir_.path() / name; }
  std::vector<Command> commands() const {
    const std::string host = " --device host ";
    const std::string samples = " --repeat 9 --seconds 0.001 ";
    return {
        {"memory " + data().string() + host + "--transport staged --batch-sizes 1,2,3,4,2", "batch_size",
         "/cases", 3, "batches of 4: device"},
        {"load " + data().string() + host + samples + "--batch-size 2", "bytes_per_second", "/samples", 1,
         "loader, mapped"},
        {"upload --memory 2MiB --chunks 64KiB --batch-sizes 1,2" + host + samples, "bytes_per_second",
         "/cases/0/samples_bytes_per_second", 9, "pinned, batched"},
        {"matmul --sizes 16,24 --threads 1" + host + samples, "flops_per_second", "/cases/1/samples", 2,
         "24, CPU f32"},
        {"write " + out().string() + " --size 1MiB --shard-bytes 512KiB --repeat 9",
         "durable_bytes_per_second", "/cases/0/samples", 6, "buffered"},
        {"convert " + photos().string() + " --jobs 1 --repeat 9", "decode.images_per_second.median",
         "/cases/0/convert/runs", 1, "conversion, 1 thread"},
        {"decode " + photos().string() + " --threads 1 --resize 64 --crop-size 48 --batch-size 2" + host +
             samples,
         "images_per_second", "/cases/0/samples", 4, "full DCT, normalised on the host"},
    };
  }

 private:
  testing::TempDir dir_;
};

TEST_F(Outputs, OfEverySubcommandAreRowsAsCsvAChartAndAtMostThreeSamplesWhenQuick) {
  for (const Command& command : commands()) {
    SCOPED_TRACE(command.arguments);
    const fs::path csv = file("rows.csv"), svg = file("chart.svg"), json = file("report.json");
    const testing::ProgramResult run =
        testing::shardbench(command.arguments + " --quick --csv " + csv.string() + " --plot " + svg.string() +
                            " --json " + json.string());
    ASSERT_EQ(run.exit_code, 0) << run.output;
    const auto report = nlohmann::json::parse(testing::read_file(json));
    EXPECT_EQ(report["complete"], true);
    EXPECT_EQ(report[nlohmann::json::json_pointer(command.samples)].size(), 3U);
    const std::string rows = testing::read_file(csv);
    const std::string header = "," + rows.substr(0, rows.find('\n')) + ",";
    EXPECT_NE(header.find("," + command.column + ","), std::string::npos) << rows;
    EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), static_cast<std::ptrdiff_t>(command.rows + 1))
        << rows;
    const std::string chart = testing::read_file(svg);
    EXPECT_NE(chart.find("</svg>"), std::string::npos) << chart;
    EXPECT_NE(chart.find(command.bar), std::string::npos) << chart;
    for (const fs::path& one : {csv, svg, json}) fs::remove(one);
  }
}

// An epoch without a whole batch delivers nothing: load waited for it for ever.
TEST_F(Outputs, OfLoadWithFewerSamplesThanABatchAreThoseOfASmallerBatch) {
  const fs::path json = file("report.json");
  const std::string load =
      "load " + data().string() + " --device host --repeat 1 --seconds 0.01 --json " + json.string();
  for (const auto& [more, batch] :
       {std::pair{"", 4}, std::pair{" --draw repeated", 4}, std::pair{" --draw weighted", 4}}) {
    SCOPED_TRACE(more);
    const testing::ProgramResult run = testing::shardbench(load + more, 60);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_EQ(nlohmann::json::parse(testing::read_file(json))["batch_size"], batch);
    fs::remove(json);
  }
  const testing::ProgramResult run = testing::shardbench(load + " --batch-size 5", 60);
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_NE(run.output.find("--batch-size 5: an epoch of 4 samples has no whole batch"), std::string::npos)
      << run.output;
}

TEST_F(Outputs, ToAChartOfAnUnknownKindAreRefusedBeforeAnyWork) {
  std::vector<std::string> all{"load " + file("made").string() + " --make-random 4"};
  for (const Command& command : commands()) all.push_back(command.arguments);
  for (const std::string& arguments : all) {
    SCOPED_TRACE(arguments);
    const testing::ProgramResult run = testing::shardbench(arguments + " --json " + file("r.json").string() +
                                                           " --plot " + file("c.pdf").string());
    EXPECT_EQ(run.exit_code, 2) << run.output;
    EXPECT_NE(run.output.find("expected a name ending in .svg"), std::string::npos) << run.output;
  }
  EXPECT_FALSE(fs::exists(file("made")));
  EXPECT_FALSE(fs::exists(file("r.json")));
}

TEST_F(Outputs, OfDeviceAreItsFilesystems) {
  const testing::ProgramResult run =
      testing::shardbench("device " + out().string() + " --csv " + file("rows.csv").string());
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const std::string rows = testing::read_file(file("rows.csv"));
  EXPECT_TRUE(rows.starts_with("path,type,source,")) << rows;
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 2) << rows;
}

}  // namespace
}  // namespace shard::bench
