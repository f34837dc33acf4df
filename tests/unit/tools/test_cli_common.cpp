// tools/common: sizes, durations, tables, arguments, and what run_main makes of failures.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "common/cli.hpp"
#include "common/format.hpp"
#include "common/output.hpp"
#include "common/progress.hpp"
#include "common/run_main.hpp"
#include "expect_error.hpp"

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

TEST(ParseSize, TakesDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_size("4096"), 4096U);
  EXPECT_EQ(parse_size("4096b"), 4096U);
  EXPECT_EQ(parse_size("64KiB"), 65536U);
  EXPECT_EQ(parse_size("256 MiB"), 256ULL << 20U);
  EXPECT_EQ(parse_size("1GB"), 1'000'000'000U);
  EXPECT_EQ(parse_size("2g"), 2ULL << 30U);
  EXPECT_EQ(parse_size("1.5GB"), 1'500'000'000U);
  EXPECT_EQ(parse_size("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseSize, RefusesWhatIsNoSizeNamingIt) {
  for (const char* text :
       {"", "MiB", "12x", "-1", "1..5GB", "1.5.2MB", "0x10", "1 0", "12MiBs", "nan", "."}) {
    EXPECT_SHARD_ERROR(parse_size(text), ErrorCode::invalid_argument, "size '" + std::string(text) + "'");
  }
  EXPECT_SHARD_ERROR(parse_size("18446744073709551616"), ErrorCode::invalid_argument, "64 bits");
  EXPECT_SHARD_ERROR(parse_size("99999999PiB"), ErrorCode::invalid_argument, "64 bits");
  EXPECT_SHARD_ERROR(parse_size("99999999.5PiB"), ErrorCode::invalid_argument, "64 bits");
}

TEST(Table, AlignsColumnsAndLeavesNoTrailingSpaces) {
  Table table({Table::Align::left, Table::Align::right, Table::Align::left}, " ");
  table.add_row({"name", "n", "x"});
  table.add_row({"größer", "12345"});
  EXPECT_EQ(table.to_string(), " name        n  x\n größer  12345\n");
  EXPECT_SHARD_ERROR(table.add_row({"1", "2", "3", "4"}), ErrorCode::invalid_argument, "4 cells");
}

TEST(Progress, PrintsNothingWhenQuietButNotesAlways) {
  testing::internal::CaptureStderr();
  {
    Progress progress(ProgressMode::quiet);
    EXPECT_FALSE(progress.due());
    progress.update("working");
    progress.note("a warning");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a warning\n");
}

TEST(Progress, MayBeUpdatedFromManyThreads) {
  testing::internal::CaptureStderr();
  {
    Progress progress;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) progress.update("line");
      });
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // nothing is due within 5 seconds
}

TEST(RunMain, ReturnsWhatTheBodyReturns) {
  EXPECT_EQ(run_main("prog", [] { return 1; }), 1);
  EXPECT_EQ(run_main("prog", [] { return 0; }), 0);
}

TEST(RunMain, PrintsFailuresWithTheProgramsNameAndReturns2) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_main("prog", []() -> int { throw Error(ErrorCode::corrupt, "x.bin: is bad"); }), 2);
  EXPECT_EQ(run_main("prog", []() -> int { throw std::runtime_error("other"); }), 2);
  EXPECT_EQ(run_main("prog", []() -> int { throw std::bad_alloc(); }), 2);
  EXPECT_EQ(run_main("prog", []() -> int { throw Error(ErrorCode::cancelled, "stopped"); }), 130);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.substr(0, text.find("prog: out of memory")), "prog: x.bin: is bad\nprog: other\n");
}

// Runs `body` with standard output replaced by `path`, in a child: what its exit code is.
int exit_code_with_output(const char* path, bool close_output) {
  const pid_t child = fork();
  if (child == 0) {
    if (close_output) {
      close(STDOUT_FILENO);
    } else {
      const int fd = open(path, O_WRONLY);
      if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) _exit(99);
    }
    _exit(run_main("prog", [] {
      out("{}\n", "text");
      return 0;
    }));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST(RunMain, ReportsAFullOrClosedStandardOutput) {
  EXPECT_EQ(exit_code_with_output("/dev/null", false), 0);
  EXPECT_EQ(exit_code_with_output("/dev/full", false), 2);
  EXPECT_EQ(exit_code_with_output("", true), 2);
}

TEST(ParseArguments, MapsHelpTo0AndMistakesTo2) {
  CLI::App app("Does things.", "prog");
  int number = 0;
  app.add_option("--number", number, "A number");
  const auto parse = [&](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "prog");
    return parse_arguments(app, static_cast<int>(arguments.size()), arguments.data());
  };
  EXPECT_FALSE(parse({"--number", "3"}).has_value());
  EXPECT_EQ(number, 3);
  testing::internal::CaptureStdout();
  EXPECT_EQ(parse({"--help"}), 0);
  flush_out();
  EXPECT_NE(testing::internal::GetCapturedStdout().find("Does things."), std::string::npos);
  testing::internal::CaptureStderr();
  EXPECT_EQ(parse({"--nonsense"}), 2);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.rfind("prog: ", 0), 0U) << text;
  EXPECT_NE(text.find("--nonsense"), std::string::npos) << text;
}

}  // namespace
}  // namespace shard::cli
