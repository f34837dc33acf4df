// Arguments, and what is wrong with them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/output.hpp"
#include "cli/run_main.hpp"

namespace shard::cli {
namespace {

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

std::string said_of(CLI::App& app, std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "prog");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(parse_arguments(app, static_cast<int>(arguments.size()), arguments.data()), 2);
  return ::testing::internal::GetCapturedStderr();
}

TEST(ParseArguments, NamesTheSubcommandsWhereNoneWasGiven) {
  CLI::App app("Does things.", "prog");
  app.require_subcommand(1);
  app.add_subcommand("look");
  EXPECT_EQ(said_of(app, {}),
            "prog: a subcommand is required; use one of: look. prog SUBCOMMAND --help explains it\n");
}

TEST(ParseArguments, NamesTheOptionThatWasMeant) {
  CLI::App app("Does things.", "prog");
  std::string text;
  app.add_option("--preset", text, "A name");
  CLI::App* const look = app.add_subcommand("look");
  look->add_option("--colour", text, "A colour");
  EXPECT_EQ(said_of(app, {"--prest", "train"}),
            "prog: there is no option \"--prest\"; did you mean --preset?\n");
  EXPECT_EQ(said_of(app, {"--presets=train"}),
            "prog: there is no option \"--presets\"; did you mean --preset?\n");
  EXPECT_EQ(said_of(app, {"look", "--color", "red"}),
            "prog: there is no option \"--color\"; did you mean --colour?\n");
  EXPECT_EQ(said_of(app, {"--jobs", "2"}),
            "prog: there is no option \"--jobs\"; run with --help-all for those there are\n");
  EXPECT_NE(said_of(app, {"look", "b"}).find("not expected"), std::string::npos);
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

}  // namespace
}  // namespace shard::cli
