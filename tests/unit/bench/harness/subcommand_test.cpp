#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "harness/subcommand.hpp"

namespace shard::bench {
namespace {

TEST(QuickOption, LowersWhatIsHigherWhereverItStands) {
  const auto parsed = [](std::vector<std::string> arguments) {
    CLI::App app;
    unsigned repeat = 5;
    double seconds = 2;
    add_repeat_option(app, repeat);
    add_seconds_option(app, seconds);
    add_quick_option(app, repeat, seconds, 0.5);
    std::reverse(arguments.begin(), arguments.end());  // as this parser wants it
    app.parse(arguments);
    return std::pair(repeat, seconds);
  };
  EXPECT_EQ(parsed({}), std::pair(5U, 2.0));
  EXPECT_EQ(parsed({"--quick"}), std::pair(3U, 0.5));
  EXPECT_EQ(parsed({"--quick", "--repeat", "9", "--seconds", "60"}), std::pair(3U, 0.5));
  EXPECT_EQ(parsed({"--repeat", "2", "--seconds", "0.1", "--quick"}), std::pair(2U, 0.1));
}

}  // namespace
}  // namespace shard::bench
