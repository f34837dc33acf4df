// shardbench convert: reports what it measured, leaves nothing behind, also when interrupted.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "data/synth.hpp"
#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

class ConvertBench : public ::testing::Test {
 protected:
  void SetUp() override {
    SynthOptions options;
    options.folder = images();
    options.count = 8;
    options.classes = 2;
    synthesize(options, {});
    fs::create_directory(out());
  }
  fs::path images() const { return dir_.path() / "images"; }
  fs::path out() const { return dir_.path() / "out"; }
  fs::path json() const { return dir_.path() / "report.json"; }
  std::string arguments(const std::string& more) const {
    return "convert " + images().string() + " --out " + out().string() + " --json " + json().string() + " " +
           more;
  }
  nlohmann::json report() const {
    std::ifstream in(json());
    return nlohmann::json::parse(in);
  }

 private:
  testing::TempDir dir_;
};

TEST_F(ConvertBench, ReportsRatesRatiosStagesAndEverySample) {
  const testing::ProgramResult run =
      testing::shardbench(arguments("--repeat 3 --jobs 2 --scaling --preset eval"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("convert/decode"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("decode and resize"), std::string::npos) << run.output;
  const nlohmann::json json = report();
  ASSERT_EQ(json["cases"].size(), 2U);
  EXPECT_EQ(json["cases"][0]["jobs"], 1);
  EXPECT_EQ(json["cases"][1]["jobs"], 2);
  EXPECT_EQ(json["input"]["images"], 8);
  EXPECT_EQ(json["checked_samples"], 8);
  for (const auto& one : json["cases"]) {
    EXPECT_EQ(one["decode"]["runs"].size(), 3U);
    ASSERT_EQ(one["convert"]["runs"].size(), 3U);
    EXPECT_GT(one["convert"]["runs"][0]["stage_thread_seconds"]["preprocess"], 0.0);
    EXPECT_GT(one["convert"]["runs"][0]["size_bytes"], 8 * 224 * 224 * 3 * 2);
    EXPECT_GT(one["ratio"]["median"], 0.0);
  }
  EXPECT_TRUE(fs::is_empty(out()));
}

TEST_F(ConvertBench, MeasuresSamplesOfAnySizeAndOtherCodecs) {
  const testing::ProgramResult run =
      testing::shardbench(arguments("--repeat 1 --jobs 4 --size original --codec packed"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(report()["size"], "original");
  EXPECT_EQ(report()["codec"], "packed");
  EXPECT_EQ(report()["checked_samples"], 8);
  EXPECT_EQ(testing::shardbench(arguments("--size 7x")).exit_code, 2);
  EXPECT_EQ(testing::shardbench(arguments("--codec nonsense")).exit_code, 2);
}

TEST_F(ConvertBench, RepeatsFilesWhenMoreAreAskedForThanThereAre) {
  const testing::ProgramResult run = testing::shardbench(arguments("--repeat 1 --count 20"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(report()["input"]["images"], 20);
  EXPECT_EQ(report()["input"]["distinct"], 8);
  EXPECT_TRUE(fs::is_empty(out()));
}

TEST_F(ConvertBench, TakesFewerWhenFewerAreAskedFor) {
  ASSERT_EQ(testing::shardbench(arguments("--repeat 1 --count 3")).exit_code, 0);
  EXPECT_EQ(report()["input"]["images"], 3);
}

TEST_F(ConvertBench, LeavesOutWhatIsNoCleanJpegAndSaysSo) {
  std::ofstream(images() / "class_00" / "notes.jpg") << "no picture";
  const fs::path cut = images() / "class_01" / "img_000001.jpg";
  fs::resize_file(cut, fs::file_size(cut) / 2);
  const testing::ProgramResult run = testing::shardbench(arguments("--repeat 1"));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(report()["input"]["images"], 7);
  EXPECT_EQ(report()["input"]["excluded"], 2);
  EXPECT_NE(run.output.find("2 files took no part"), std::string::npos) << run.output;
}

TEST_F(ConvertBench, PrintsNothingButJsonWhenThatGoesToStandardOutput) {
  const std::string command =
      "convert " + images().string() + " --out " + out().string() + " --repeat 1 --json - 2>/dev/null";
  const testing::ProgramResult run = testing::shardbench(command);
  ASSERT_EQ(run.exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(run.output)["benchmark"], "convert");
}

TEST_F(ConvertBench, EndsWithTwoWhereThereIsNothingToMeasure) {
  EXPECT_EQ(testing::shardbench("convert " + (images() / "absent").string()).exit_code, 2);
  const testing::ProgramResult none = testing::shardbench("convert " + out().string());
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(testing::shardbench(arguments("--preset nonsense")).exit_code, 2);
  EXPECT_TRUE(fs::is_empty(out()));
}

TEST_F(ConvertBench, RemovesWhatItMadeWhenInterrupted) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::execl(SHARDBENCH_PROGRAM, SHARDBENCH_PROGRAM, "convert", images().c_str(), "--out", out().c_str(),
            "--count", "2000", "--repeat", "1000", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (fs::is_empty(out()) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_TRUE(fs::is_empty(out()));
}

}  // namespace
}  // namespace shard::bench
