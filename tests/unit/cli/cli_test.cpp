// tools/cli: sizes, durations, tables, arguments, and what run_main makes of failures.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/text/size.hpp"
#include "cli/cli.hpp"
#include "cli/config_file.hpp"
#include "cli/flags.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"
#include "cli/pace.hpp"
#include "cli/progress.hpp"
#include "cli/run_main.hpp"
#include "cli/text.hpp"
#include "expect_error.hpp"
#include "temp_dir.hpp"

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
    EXPECT_SHARD_ERROR(parse_size(text), ErrorCode::invalid_argument, "size \"" + std::string(text) + "\"");
  }
  EXPECT_SHARD_ERROR(parse_size("18446744073709551616"), ErrorCode::invalid_argument, "64 bits");
  EXPECT_SHARD_ERROR(parse_size("99999999PiB"), ErrorCode::invalid_argument, "64 bits");
  EXPECT_SHARD_ERROR(parse_size("99999999.5PiB"), ErrorCode::invalid_argument, "64 bits");
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

TEST(Progress, PrintsNothingWhenQuietButNotesAlways) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress(ProgressMode::quiet);
    EXPECT_FALSE(progress.due());
    progress.update("working");
    progress.note("a warning");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "a warning\n");
}

TEST(Pace, SaysNothingBeforeItHasWatchedForAWhile) {
  const Pace pace(100.0, 50);
  EXPECT_FALSE(pace.rate(100.0, 51));
  EXPECT_FALSE(pace.rate(100.000001, 75));  // 25 million a second
  EXPECT_FALSE(pace.rate(100.4, 1000));
  ASSERT_TRUE(pace.rate(100.5, 60));
  EXPECT_DOUBLE_EQ(*pace.rate(100.5, 60), 20.0);
  EXPECT_DOUBLE_EQ(*pace.rate(104.0, 50), 0.0);
  EXPECT_FALSE(pace.rate(99.0, 60));
  EXPECT_FALSE(pace.rate(101.0, 40));
}

TEST(Progress, MayBeUpdatedFromManyThreads) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) progress.update("line");
      });
    }
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");  // nothing is due within 5 seconds
}

TEST(RunMain, ReturnsWhatTheBodyReturns) {
  EXPECT_EQ(run_main("prog", [] { return 1; }), 1);
  EXPECT_EQ(run_main("prog", [] { return 0; }), 0);
}

TEST(RunMain, PrintsFailuresWithTheProgramsNameAndReturns2) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_main("prog", []() -> int { throw Error(ErrorCode::corrupt, "x.bin: is bad"); }), 2);
  EXPECT_EQ(run_main("prog", []() -> int { throw std::runtime_error("other"); }), 2);
  EXPECT_EQ(run_main("prog", []() -> int { throw std::bad_alloc(); }), 2);
  EXPECT_EQ(run_main("prog", []() -> int { throw Error(ErrorCode::cancelled, "stopped"); }), 130);
  const std::string text = ::testing::internal::GetCapturedStderr();
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

TEST(RunMain, EndsWith141WithoutAWordWhenThePipeIsClosed) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);  // nobody reads, from the first byte on
  const pid_t child = fork();
  if (child == 0) {
    if (dup2(ends[1], STDOUT_FILENO) < 0) _exit(99);
    close(ends[1]);
    _exit(run_main("prog", [] {
      out("{}\n", "text");
      return 0;
    }));
  }
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, kExitBrokenPipe);
}

// An app with the kinds of options that our programs have, and a configuration file.
class ConfigFile : public ::testing::Test {
 protected:
  // What parse_arguments() returns; what it says is in `said`.
  std::optional<int> parse(const std::string& text, std::vector<std::string> more = {}) {
    const std::string file = (temp_.path() / "options.txt").string();
    std::ofstream(file) << text;
    CLI::App app("Does things.", "prog");
    app.add_option("IMAGES", images)->required();
    app.add_option("--mean", mean);
    app.add_option("--jobs", jobs);
    app.add_flag("--fast-decode", fast);
    add_config_file(app);
    std::vector<std::string> arguments{"prog", "photos", "--config", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<const char*> pointers;
    for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
    ::testing::internal::CaptureStderr();
    const auto code = parse_arguments(app, static_cast<int>(pointers.size()), pointers.data());
    said = ::testing::internal::GetCapturedStderr();
    return code;
  }

  shard::testing::TempDir temp_;
  std::string images, mean, said;
  int jobs = 0;
  bool fast = false;
};

TEST_F(ConfigFile, TakesListsWithoutQuotesCommentsAndFlags) {
  EXPECT_FALSE(
      parse("# how we train\n\n mean = 0.5,0.25,0.125\nfast-decode=true\r\n--jobs = '7'\n").has_value())
      << said;
  EXPECT_EQ(mean, "0.5,0.25,0.125");
  EXPECT_TRUE(fast);
  EXPECT_EQ(jobs, 7);
}

TEST_F(ConfigFile, LosesAgainstTheCommandLine) {
  EXPECT_FALSE(parse("jobs = 7\nfast-decode = false\n", {"--jobs", "3"}).has_value()) << said;
  EXPECT_EQ(jobs, 3);
  EXPECT_FALSE(fast);
}

TEST_F(ConfigFile, NamesFileLineAndWhatIsWrong) {
  const auto refused = [&](const std::string& text, const std::string& line, const std::string& why) {
    EXPECT_EQ(parse(text), 2) << text;
    EXPECT_NE(said.find("options.txt\": " + line + ": "), std::string::npos) << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
  };
  refused("mean = 1\n# x\npresett = train\n", "line 3", "unknown option \"presett\"");
  refused("jobs\n", "line 1", "jobs has no value");
  refused("fast-decode = maybe\n", "line 1", "expected true or false");
  refused("jobs = 1\njobs = 2\n", "line 2", "is already set in line 1");
  refused("[section]\n", "line 1", "no sections");
  refused("config = other.txt\n", "line 1", "unknown option \"config\"");
}

TEST(ParseArguments, NamesAnUnknownSubcommandAndThoseThatThereAre) {
  CLI::App app("Does things.", "prog");
  app.require_subcommand(1);
  app.add_subcommand("look");
  app.add_subcommand("check");
  const char* arguments[] = {"prog", "bogus"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(parse_arguments(app, 2, arguments), 2);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("no subcommand \"bogus\"; use one of: look, check"), std::string::npos) << text;
}

TEST(Wrap, JoinsTheLinesOfAParagraphAndBreaksThemAtTheWidth) {
  EXPECT_EQ(wrap("\n    one two\n    three four ", 9), "one two\nthree\nfour");
  EXPECT_EQ(wrap("one two three", 9, 4), "one two\n    three") << "the indentation does not count";
  EXPECT_EQ(wrap("a toolongword b", 5), "a\ntoolongword\nb");
  EXPECT_EQ(wrap(" \n ", 5), "");
}

TEST(Wrap, KeepsParagraphsAndItems) {
  EXPECT_EQ(wrap("one\n two\n\n three", 20), "one two\n\nthree");
  EXPECT_EQ(wrap("list:\n - one two\n - 3 - 2", 7, 1), "list:\n - one\n   two\n - 3 - 2");
}

TEST(Help, ShowsPlaceholdersDefaultsAndRangesAndTheFirstParagraphOfEachSubcommand) {
  CLI::App app("Does\n  things.", "prog");
  CLI::App* sub = app.add_subcommand("look", "Look at it\n\nVery closely.");
  unsigned jobs = 2;
  bool check = true;
  auto* option =
      sub->add_option("-j,--jobs", jobs, "Threads")->check(CLI::Range(1, 8))->capture_default_str();
  sub->add_flag("!--no-check", check, "Do not check")->excludes(option);
  ::testing::internal::CaptureStdout();
  const char* arguments[] = {"prog", "--help"};
  EXPECT_EQ(parse_arguments(app, 2, arguments), 0);
  flush_out();
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("Does things.\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  look                    Look at it\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("closely"), std::string::npos) << text;
  const std::string help = sub->help();
  EXPECT_NE(help.find("Look at it\n\nVery closely.\n"), std::string::npos) << help;
  EXPECT_NE(help.find("  -j,--jobs N             Threads (default: 2; 1 to 8"), std::string::npos) << help;
  EXPECT_NE(help.find("  --no-check              Do not check (not with --jobs)\n"), std::string::npos)
      << help;
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
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(parse({"--help"}), 0);
  flush_out();
  EXPECT_NE(::testing::internal::GetCapturedStdout().find("Does things."), std::string::npos);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(parse({"--nonsense"}), 2);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.rfind("prog: ", 0), 0U) << text;
  EXPECT_NE(text.find("--nonsense"), std::string::npos) << text;
}

TEST(Flags, TakeTheNamesOfOptionsInMessages) {
  EXPECT_EQ(with_flags("use fewer `jobs`, or `samples_per_shard` 3"),
            "use fewer --jobs, or --samples-per-shard 3");
  EXPECT_EQ(with_flags("`shard_size_bytes`, `images`, `out`"), "--shard-size, IMAGES, OUT");
}

TEST(Flags, LeaveWhatIsQuotedAndWhatIsNoName) {
  EXPECT_EQ(with_flags("\"a/`jobs`\" and `jobs`"), "\"a/`jobs`\" and --jobs");
  for (const char* text : {"", "`", "a `b", "``", "`A b`", "`1`"}) EXPECT_EQ(with_flags(text), text);
}

}  // namespace
}  // namespace shard::cli
