// What --help prints.
#include <gtest/gtest.h>

#include <array>
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

TEST(Summary, IsTheFirstSentenceOnOneLine) {
  EXPECT_EQ(summary_of("One\n   sentence. Another."), "One sentence");
  EXPECT_EQ(summary_of("Up to here; not this"), "Up to here");
  EXPECT_EQ(summary_of("A (b. c; d) e.g.x, 0, 1, ...: f. g"), "A (b. c; d) e.g.x, 0, 1, ...: f");
  EXPECT_EQ(summary_of("First paragraph\n\nsecond"), "First paragraph");
  EXPECT_EQ(summary_of("a, b, ... for c. d"), "a, b, ... for c");
  EXPECT_EQ(summary_of(""), "");
}

// A program with more options than fit on a screen.
class LongHelp : public ::testing::Test {
 protected:
  LongHelp() {
    for (int i = 0; i < 60; ++i)
      app_.add_option("--option-" + std::to_string(i), values_[i], "What it is. And more");
  }
  std::string printed(const char* option) {
    ::testing::internal::CaptureStdout();
    const char* arguments[] = {"prog", option};
    EXPECT_EQ(parse_arguments(app_, 2, arguments), 0);
    flush_out();
    return ::testing::internal::GetCapturedStdout();
  }
  std::array<std::string, 60> values_;
  CLI::App app_{"Does things.\n\nIn this way.", "prog"};
};

TEST_F(LongHelp, HasWhatIsNamedAndSaysWhereTheRestIs) {
  show_in_help(app_, {"--option-7", "--help"});
  const std::string text = printed("--help");
  EXPECT_EQ(text,
            "Does things.\n\n"
            "Usage: prog [OPTIONS]\n\n"
            "  -h,--help               Print what is used most, on one screen\n"
            "  --option-7 TEXT         What it is\n\n"
            "prog --help-all explains these and 61 more options\n");
}

TEST_F(LongHelp, HelpAllHasEverythingOfSubcommandsToo) {
  show_in_help(app_, {"--option-7"});
  unsigned jobs = 0;
  app_.add_subcommand("look", "Look at it.\n\nVery closely.")
      ->add_option("--jobs", jobs, "Threads. At most 8");
  const std::string text = printed("--help-all");
  for (const char* part : {"In this way.", "--option-59 TEXT", "What it is. And more", "Very closely.",
                           "Usage: prog look [OPTIONS]", "--jobs N", "Threads. At most 8"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(Placeholder, IsWordsWhereACheckKnowsThem) {
  CLI::App app("Does things.", "prog");
  std::string text;
  EXPECT_EQ(placeholder_of(*app.add_option("--a", text, "")->check(CLI::IsMember({"x", "y"}))), "x|y");
  EXPECT_EQ(placeholder_of(*app.add_option("--b", text, "")->type_name("FILE")), "FILE");
  EXPECT_EQ(placeholder_of(*app.add_option("--c", text, "")), "TEXT");
}

}  // namespace
}  // namespace shard::cli
