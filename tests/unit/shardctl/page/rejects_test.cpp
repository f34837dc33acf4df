// Reasons of the same kind are one group, and no file makes the page large.
#include "shardctl/page/rejects.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_dir.hpp"

namespace shard::ctl {
namespace {

class RejectsTest : public ::testing::Test {
 protected:
  Rejects read(const std::string& csv) const {
    std::ofstream(temp_.path() / "rejects.csv") << csv;
    return read_rejects(temp_.path() / "rejects.csv");
  }
  testing::TempDir temp_;
};

TEST_F(RejectsTest, TheKindOfAReasonLeavesOutNumbersAndQuotedText) {
  EXPECT_EQ(reason_kind("neither JPEG nor PNG: the file begins with 01 4d ff"),
            reason_kind("neither JPEG nor PNG: the file begins with 3c"));
  EXPECT_EQ(reason_kind("\"a 1.png\" has 12 pixels"), "\"\" has # pixels");
  EXPECT_EQ(reason_kind("\"a\" has 12 pixels"), reason_kind("\"b 7\" has 700 pixels"));
  EXPECT_NE(reason_kind("is a HEIC image"), reason_kind("is a PDF document"));
  EXPECT_EQ(reason_kind(""), "");
  EXPECT_EQ(reason_kind("an open \"quote"), "an open \"\"");
}

TEST_F(RejectsTest, GroupsAreSortedByTheirSize) {
  const Rejects rejects = read("path,reason\na,is a PDF\nb,cut at byte 7\n\"c,d\",cut at byte 900\n");
  EXPECT_TRUE(rejects.readable);
  EXPECT_EQ(rejects.total, 3U);
  ASSERT_EQ(rejects.groups.size(), 2U);
  EXPECT_EQ(rejects.groups[0].reason, "cut at byte 7");
  EXPECT_EQ(rejects.groups[0].count, 2U);
  EXPECT_EQ(rejects.groups[0].examples[1].first, "c,d");
  EXPECT_EQ(rejects.groups[0].examples[1].second, "cut at byte 900");
}

TEST_F(RejectsTest, ManyReasonsAndLongOnesAreBounded) {
  std::string csv = "path,reason\n";
  for (int i = 0; i < 3000; ++i) {
    const auto letter = [&](int by) { return static_cast<char>('g' + i / by % 20); };
    csv += "p,reason ";
    for (const int by : {1, 20, 400}) csv += letter(by);
    csv.append(2000, 'x').append("\n");
  }
  const Rejects rejects = read(csv);
  EXPECT_EQ(rejects.total, 3000U);
  EXPECT_EQ(rejects.groups.size(), kMostReasons);
  EXPECT_EQ(rejects.groups[0].reason, "other reasons");
  EXPECT_EQ(rejects.groups[0].examples.size(), kRejectExamples);
  EXPECT_LT(rejects.groups[1].reason.size(), 600U);
}

TEST_F(RejectsTest, AMissingOrDamagedFileIsSaid) {
  EXPECT_FALSE(read_rejects(temp_.path() / "none.csv").readable);
  const Rejects rejects = read("path,reason\na,b\n\"open");
  EXPECT_FALSE(rejects.readable);
  EXPECT_EQ(rejects.total, 1U);
  EXPECT_FALSE(read("something,else\na,b\n").readable);
}

TEST_F(RejectsTest, BytesThatAreNoTextAreEscaped) {
  const Rejects rejects = read("path,reason\na\xFF,\x01 bad\n");
  ASSERT_EQ(rejects.groups.size(), 1U);
  EXPECT_EQ(rejects.groups[0].examples[0].first, "a\\xff");
  EXPECT_EQ(rejects.groups[0].reason, "\\x01 bad");
}

}  // namespace
}  // namespace shard::ctl
