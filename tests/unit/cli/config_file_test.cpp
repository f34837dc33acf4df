// Options of a file.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "cli/config_file.hpp"
#include "cli/run_main.hpp"
#include "support/temp_dir.hpp"

namespace shard::cli {
namespace {

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

}  // namespace
}  // namespace shard::cli
