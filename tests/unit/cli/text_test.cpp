// Sizes, durations, words for a shell, tables.
#include <gtest/gtest.h>

#include <limits>

#include "cli/text.hpp"
#include "support/expect_error.hpp"

namespace shard::cli {
namespace {

TEST(HumanBytes, HasThreeDigitsAndABinaryUnit) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(12'900'000), "12.3 MiB");
  EXPECT_EQ(human_bytes(456ULL << 30U), "456 GiB");
  EXPECT_EQ(human_bytes((1ULL << 30U) - 1), "1.00 GiB");  // never "1024 MiB"
  EXPECT_EQ(human_bytes(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
}

TEST(HumanCount, SeparatesThousands) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1,000");
  EXPECT_EQ(human_count(1234567), "1,234,567");
  EXPECT_EQ(counted(1, "image"), "1 image");
  EXPECT_EQ(counted(2000, "image"), "2,000 images");
}

TEST(HumanDuration, ChoosesTheUnitThatReadsBest) {
  EXPECT_EQ(human_duration(0.42), "0.42 s");
  EXPECT_EQ(human_duration(59.96), "1 min 00 s");
  EXPECT_EQ(human_duration(185), "3 min 05 s");
  EXPECT_EQ(human_duration(7620), "2 h 07 min");
  EXPECT_EQ(human_duration(86400.0 * 3 + 4 * 3600), "3 d 04 h");
  EXPECT_EQ(human_duration(std::numeric_limits<double>::infinity()), "unknown");
  EXPECT_EQ(human_duration(-1), "unknown");
}

TEST(ShellWord, IsWhatAShellTakesForTheText) {
  EXPECT_EQ(shell_word("out/train-0.tar"), "out/train-0.tar");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$(x) `y` \"z\" \\"), "'$(x) `y` \"z\" \\'");
  EXPECT_EQ(shell_word("\x1b[31m'\n\\"), "$'\\x1b[31m\\'\\x0a\\\\'");
  EXPECT_EQ(shell_word("\xff"), "$'\\xff'");
}

TEST(Table, AlignsColumnsAndLeavesNoTrailingSpaces) {
  Table table({Table::Align::left, Table::Align::right, Table::Align::left}, " ");
  table.add_row({"name", "n", "x"});
  table.add_row({"größer", "12345"});
  EXPECT_EQ(table.to_string(), " name        n  x\n größer  12345\n");
  EXPECT_SHARD_ERROR(table.add_row({"1", "2", "3", "4"}), ErrorCode::invalid_argument, "4 cells");
}

}  // namespace
}  // namespace shard::cli
