// shardbench tiers, as a user runs it.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "data/load_data.hpp"
#include "limits/page_cache.hpp"
#include "support/programs/bench_dataset.hpp"
#include "support/programs/shardbench_support.hpp"
#include "support/temp_dir.hpp"

namespace shard::bench {
namespace {

namespace fs = std::filesystem;

class TiersProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::make_photos(photos(), 8);
    testing::make_dataset(photos(), data());
    fs::create_directory(tier());
  }
  fs::path photos() const { return dir_.path() / "photos"; }
  fs::path data() const { return dir_.path() / "data"; }
  fs::path tier() const { return dir_.path() / "tier"; }
  fs::path json() const { return dir_.path() / "report.json"; }
  testing::ProgramResult run(const std::string& more) const {
    return testing::shardbench("tiers " + data().string() +
                               " --device host --threads 2 --batch-size 4 --seconds "
                               "0.01 --repeat 2 --json " +
                               json().string() + " " + more);
  }
  std::string own() const { return "--images " + photos().string() + " --tier own=" + tier().string() + " "; }
  nlohmann::json report() const {
    std::ifstream in(json());
    return nlohmann::json::parse(in);
  }
  nlohmann::json rows() const { return report()["rows"]; }  // a value, for loops
  testing::TempDir dir_;
};

TEST_F(TiersProgram, MeasuresEveryRowOfPlainAndPackedAndEmulatedTiers) {
  const fs::path packed = dir_.path() / "packed";
  testing::make_dataset(photos(), packed, "packed");
  const fs::path csv = dir_.path() / "rows.csv";
  const fs::path svg = dir_.path() / "chart.svg";
  const testing::ProgramResult result =
      run(packed.string() + " " + own() + "--emulate bw=500MB/s,lat=0ms --need 10 --csv " + csv.string() +
          " --plot " + svg.string());
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("A GPU that takes 10 samples/s is kept fed"), std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("(emulated)"), std::string::npos) << result.output;
  const nlohmann::json json = report();
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["images"], 8);
  std::set<std::string> kinds;
  for (const auto& row : json["rows"]) {
    EXPECT_FALSE(row.contains("problem")) << row;
    ASSERT_EQ(row["samples"].size(), 2U) << row;
    EXPECT_GT(row["samples_per_second"], 0) << row;
    EXPECT_EQ(row["emulated"].get<bool>(), row["tier"] == "bw=500MB/s,lat=0ms (emulated)");
    if (row["cache"] == "warm") {
      EXPECT_GT(row["limit_samples_per_second"], 0) << row;
    }
    kinds.insert(row["cache"].get<std::string>() + " " + row["contender"].get<std::string>() + " " +
                 row["dataset"].get<std::string>());
  }
  for (const char* kind : {"warm decode on the fly u8", "warm loader, mapped u8", "warm loader, staged u8",
                           "warm loader, staged u8 packed", "cold precomputed, in sequence u8 packed"})
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  EXPECT_EQ(kinds.contains("cold loader, staged u8"), !is_memory(tier()));
  EXPECT_GT(fs::file_size(csv), 200U);
  EXPECT_GT(fs::file_size(svg), 200U);
  EXPECT_TRUE(fs::is_empty(tier()));
}

// Stored pixels are not those of the images: decoding is compared with the images, and the codec's result
// with the samples.
TEST_F(TiersProgram, MeasuresEncodedSamplesBesideDecodingTheirImages) {
  const fs::path encoded = dir_.path() / "encoded";
  testing::make_dataset(photos(), encoded, "jpeg:80");
  const std::string with = encoded.string() + " --device host --threads 2 --batch-size 4 --seconds 0.01" +
                           " --repeat 1 --emulate bw=500MB/s,lat=0ms --json " + json().string() + " ";
  const testing::ProgramResult result = testing::shardbench("tiers " + with + own());
  ASSERT_EQ(result.exit_code, 0) << result.output;
  for (const auto& row : rows()) {
    EXPECT_FALSE(row.contains("problem")) << row;
    EXPECT_GT(row["bytes_per_second"], 0) << row;
  }
  const fs::path others = dir_.path() / "others";
  testing::make_photos(others, 8, 1);  // the same names
  const testing::ProgramResult wrong =
      testing::shardbench("tiers " + with + "--tier own=" + tier().string() + " --images " + others.string());
  EXPECT_EQ(wrong.exit_code, 1) << wrong.output;
  EXPECT_NE(wrong.output.find("decoding does not give the samples of the data set"), std::string::npos)
      << wrong.output;
}

TEST_F(TiersProgram, DeliversSamplesOfAnySizeInOneSize) {
  const fs::path any = dir_.path() / "any";
  testing::make_dataset(photos(), any, "jpeg", true);
  const std::string with = " --device host --threads 2 --batch-size 4 --seconds 0.01 --repeat 1 --emulate " +
                           std::string("bw=500MB/s,lat=0ms --json ") + json().string() + " ";
  const testing::ProgramResult result = testing::shardbench("tiers " + any.string() + with + own());
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("short side to 256, centre 224x224"), std::string::npos) << result.output;
  std::set<std::string> contenders;
  for (const auto& row : rows()) {
    EXPECT_FALSE(row.contains("problem")) << row;
    EXPECT_GT(row["bytes_per_second"], 0) << row;
    contenders.insert(row["contender"].get<std::string>());
  }
  for (const char* name : {"decode on the fly", "loader, staged", "precomputed, in sequence"})
    EXPECT_TRUE(contenders.contains(name)) << name;
  const testing::ProgramResult both =
      testing::shardbench("tiers " + data().string() + " " + any.string() + with + own());
  EXPECT_EQ(both.exit_code, 2) << both.output;
  EXPECT_NE(both.output.find("one has samples of any size"), std::string::npos) << both.output;
}

TEST_F(TiersProgram, SaysWhichTierIsLeftOutAndMeasuresTheOthers) {
  const testing::ProgramResult result = run(own() + "--tier gone=" + (dir_.path() / "absent").string());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.output.find("tier gone was left out: "), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("is it mounted?"), std::string::npos) << result.output;
  EXPECT_GT(report()["rows"].size(), 2U);
  EXPECT_EQ(report()["problems"].size(), 1U);
}

TEST_F(TiersProgram, LeavesDecodingOutWhereTheImagesAreOthers) {
  const fs::path others = dir_.path() / "others";
  testing::make_photos(others, 8, 1);  // the same names
  const testing::ProgramResult wrong = run("--images " + others.string() + " --tier own=" + tier().string());
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.output.find("decoding does not give the samples of the data set"), std::string::npos)
      << wrong.output;
  const testing::ProgramResult none = run("--images " + tier().string() + " --tier own=" + tier().string());
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.output.find("give the folder that the data set was made of"), std::string::npos)
      << none.output;
  for (const auto& row : rows()) EXPECT_EQ(row.contains("problem"), row["decodes"].get<bool>()) << row;
}

TEST_F(TiersProgram, LeavesOutADataSetWhoseBytesAreSpoilt) {
  for (const auto& entry : fs::directory_iterator(data())) {
    if (entry.path().extension() != ".safetensors") continue;
    std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-10, std::ios::end);
    file.put('\x5A');
  }
  const testing::ProgramResult result = run(own());
  EXPECT_EQ(result.exit_code, 1);
  for (const auto& row : rows()) EXPECT_TRUE(row.contains("problem")) << row;
  EXPECT_TRUE(fs::is_empty(tier()));
}

TEST_F(TiersProgram, SaysWhereNothingCanBeMadeCold) {
  if (is_memory(data()) || !fs::is_directory("/dev/shm")) GTEST_SKIP() << "no disk here";
  std::vector<fs::path> shards;
  for (const auto& entry : fs::directory_iterator(data()))
    if (entry.path().extension() == ".safetensors") shards.push_back(entry.path());
  if (drop_cache(shards).share() > 0) GTEST_SKIP() << "the system does not drop, or does not say";
  const int fd = ::open(shards.at(0).c_str(), O_RDONLY | O_CLOEXEC);
  const std::size_t size = fs::file_size(shards[0]);
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);  // its pages stay
  ::close(fd);
  ASSERT_NE(mapped, MAP_FAILED);
  const testing::ProgramResult result = run("--images " + photos().string());  // in place
  ::munmap(mapped, size);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("cold cannot be measured"), std::string::npos) << result.output;
  for (const auto& row : rows())
    EXPECT_EQ(row.contains("problem"), row["cache"] == "cold" && !row["decodes"].get<bool>()) << row;
}

TEST_F(TiersProgram, EndsWithTwoOnBadUsage) {
  const auto expect_two = [&](const std::string& more, const std::string& piece) {
    const testing::ProgramResult result = run(more);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_NE(result.output.find(piece), std::string::npos) << result.output;
  };
  expect_two("", "--images");
  expect_two(own() + "--emulate floppy", "--emulate \"floppy\": expected");
  expect_two(own() + "--tier nameless", "--tier \"nameless\": expected NAME=PATH");
  expect_two(own() + "--plot chart.pdf", "ending in .svg");
  expect_two(own() + "--order backwards", "backwards");
  expect_two(tier().string() + " " + own(), tier().string());  // an empty folder is not a data set
  const fs::path gray = dir_.path() / "gray";
  make_random_dataset(gray.string(), 8, {DType::u8, Layout::nhwc, 1, 32, 32}, 1, true);
  expect_two(gray.string() + " " + own(), "of any size, with 1 channels of u8");
  EXPECT_TRUE(fs::is_empty(tier()));
}

TEST_F(TiersProgram, RemovesWhatItCopiedWhenItIsTerminated) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  const std::string place = "own=" + tier().string();
  if (child == 0) {
    ::execl(SHARDBENCH_PROGRAM, SHARDBENCH_PROGRAM, "tiers", data().c_str(), "--images", photos().c_str(),
            "--tier", place.c_str(), "--device", "host", "--repeat", "1000", "--batch-size", "4",
            static_cast<char*>(nullptr));
    ::_exit(127);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (fs::is_empty(tier()) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_TRUE(fs::is_empty(tier()));
}

}  // namespace
}  // namespace shard::bench
