// SampleLogs: what one process stores, others find; damage and cut files are samples that are not there.
#include "convert/engine/sample_logs.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/files/file.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {
namespace {

namespace fs = std::filesystem;

// In two pieces.
std::vector<std::span<const std::byte>> bytes_of(std::string_view text) {
  return {as_byte_span(text.substr(0, 2)), as_byte_span(text.substr(2))};
}

class SampleLogsTest : public ::testing::Test {
 protected:
  SampleLogs logs(std::uint64_t key = 1) { return SampleLogs(dir_.path(), key, 10, 4); }
  std::vector<fs::path> files(const std::string& end) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(dir_.path()))
      if (entry.path().extension() == end) found.push_back(entry.path());
    return found;
  }
  testing::TempDir dir_;
};

std::string read(SampleLogs& logs, std::uint64_t input) {
  std::vector<std::byte> out;
  return logs.read(input, out) ? std::string(as_text(out)) : "none";
}

TEST_F(SampleLogsTest, OthersFindWhatOneStores) {
  SampleLogs one = logs();
  SampleLogs two = logs();
  one.append(3, bytes_of("three"));
  two.append(9, bytes_of("nine"));
  EXPECT_EQ(read(one, 3), "three");
  EXPECT_EQ(read(two, 3), "none");
  two.refresh();
  one.refresh();
  EXPECT_EQ(read(two, 3), "three");
  EXPECT_EQ(read(one, 9), "nine");
  EXPECT_EQ(one.count(0), 1U);
  EXPECT_EQ(one.count(2), 1U);
  EXPECT_EQ(one.count(), 2U);
  EXPECT_EQ(files(".index").size(), 2U);
}

TEST_F(SampleLogsTest, ALogOfAnEndedProcessIsGoneOnWith) {
  for (int run = 0; run < 5; ++run) {
    SampleLogs again = logs();
    again.refresh();
    EXPECT_EQ(again.count(), static_cast<std::uint64_t>(run));
    const std::string text = "run " + std::to_string(run);
    again.append(static_cast<std::uint64_t>(run), bytes_of(text));
    again.append(0, bytes_of("once more"));
  }
  SampleLogs last = logs();
  last.refresh();
  for (int run = 0; run < 5; ++run)
    EXPECT_EQ(read(last, static_cast<std::uint64_t>(run)), "run " + std::to_string(run));
  EXPECT_EQ(files(".index").size(), 1U);
}

TEST_F(SampleLogsTest, LogsOfAnotherConversionDoNotCount) {
  logs(1).append(3, bytes_of("three"));
  SampleLogs other = logs(2);
  other.refresh();
  EXPECT_EQ(other.count(), 0U);
  EXPECT_FALSE(other.has(3));
}

TEST_F(SampleLogsTest, ADamagedSampleIsForgotten) {
  logs().append(3, bytes_of("three"));
  std::ofstream(files(".data").front(), std::ios::in | std::ios::out) << 'T';
  SampleLogs again = logs();
  again.refresh();
  EXPECT_TRUE(again.has(3));
  EXPECT_EQ(read(again, 3), "none");
  EXPECT_FALSE(again.has(3));
  EXPECT_EQ(again.count(), 0U);
  again.append(3, bytes_of("three"));
  EXPECT_EQ(read(again, 3), "three");
}

TEST_F(SampleLogsTest, AnEntryThatWasCutIsWrittenOver) {
  {
    SampleLogs one = logs();
    one.append(1, bytes_of("one"));
    one.append(2, bytes_of("two"));
  }
  const fs::path index = files(".index").front();
  fs::resize_file(index, fs::file_size(index) - 3);
  SampleLogs again = logs();
  again.refresh();
  EXPECT_EQ(again.count(), 1U);
  again.append(2, bytes_of("zwei"));
  again.append(5, bytes_of("five"));
  SampleLogs last = logs();
  last.refresh();
  EXPECT_EQ(read(last, 1), "one");
  EXPECT_EQ(read(last, 2), "zwei");
  EXPECT_EQ(read(last, 5), "five");
}

TEST_F(SampleLogsTest, DropGivesTheSpaceBack) {
  SampleLogs one = logs();
  const std::string large(1 << 20U, 'x');
  for (std::uint64_t i = 0; i < 8; ++i) one.append(i, bytes_of(large));
  one.drop(0);
  EXPECT_EQ(read(one, 0), "none");
  EXPECT_EQ(read(one, 5), large);
}

}  // namespace
}  // namespace shard::convert
