// What --help prints.
#include <gtest/gtest.h>

#include <string>

#include "cli/cli.hpp"
#include "cli/help_format.hpp"
#include "cli/output.hpp"

namespace shard::cli {
namespace {

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

}  // namespace
}  // namespace shard::cli
