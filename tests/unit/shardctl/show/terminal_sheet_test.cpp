// Where tiles are in a terminal.
#include "shardctl/show/terminal_sheet.hpp"

#include <gmock/gmock.h>

#include <regex>
#include <string>

#include "support/image/small_picture.hpp"

namespace shard::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Terminal of(Graphics graphics, std::uint32_t columns = 80, std::uint32_t rows = 24) {
  Terminal terminal;
  terminal.graphics = graphics;
  terminal.true_colors = true;
  terminal.columns = columns;
  terminal.rows = rows;
  return terminal;
}

std::vector<std::string> lines_of(std::string text) {
  text = std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), "");
  text = std::regex_replace(text, std::regex("\xE2\x96\x80"), "#");
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

TEST(TerminalSheet, BlocksFillTheLinesAndCaptionsStandBelow) {
  TerminalSheet sheet(of(Graphics::blocks), 4, 1, 0);
  ASSERT_EQ(sheet.most_side(), 25U);  // three of 26 characters, one of which is a gap
  sheet.start({4, 3});
  std::string out;
  const auto write = [&](std::string_view text) { out += text; };
  const testing::SmallPicture picture(4, 3);
  for (const std::uint64_t tile : {0U, 2U, 3U})  // tile 1 is damaged
    sheet.put(tile, picture.view(), "#" + std::to_string(tile) + " d\xC3\xB6g", write);
  sheet.finish(write);
  const std::string gap(48, ' ');
  EXPECT_EQ(lines_of(out),
            (std::vector<std::string>{"####" + gap + "####", "####" + gap + "####",
                                      "#0 d\xC3\xB6g" + std::string(46, ' ') + "#2 d\xC3\xB6g",  //
                                      "####", "####", "#3 d\xC3\xB6g"}));
}

TEST(TerminalSheet, PicturesOfPixelsAreEnlargedAndFitOnTheScreen) {
  TerminalSheet sheet(of(Graphics::sixel, 100, 12), 8, 1, 0);
  ASSERT_EQ(sheet.most_side(), 180U);  // nine lines of 20 pixels; 24 columns of 10 would be more
  sheet.start({32, 20});
  std::string out;
  const auto write = [&](std::string_view text) { out += text; };
  const testing::SmallPicture picture(32, 20);
  for (std::uint64_t tile = 0; tile < 2; ++tile) sheet.put(tile, picture.view(), "x", write);
  sheet.finish(write);
  EXPECT_THAT(out, HasSubstr("\"1;1;160;100#"));  // five times
  // Five lines of pixels and the caption's: made first, then the cursor goes up, and each tile to its place.
  EXPECT_TRUE(
      out.starts_with("\n\n\n\n\n\n\x1b[6A\x1b"
                      "7\x1bP"))
      << out.substr(0, 40);
  EXPECT_THAT(out, HasSubstr("\x1b\\\x1b"
                             "8\x1b"
                             "7\x1b[25C\x1bP"));
  EXPECT_TRUE(
      out.ends_with("\x1b"
                    "8\x1b[5Bx" +
                    std::string(24, ' ') + "x\n"));
}

TEST(TerminalSheet, TilesOfASampleStaySideBySide) {
  EXPECT_EQ(TerminalSheet(of(Graphics::blocks, 200), 99, 3, 0).characters(), 200U / 6 - 1);
  EXPECT_EQ(TerminalSheet(of(Graphics::blocks, 80), 99, 5, 0).characters(), 80U / 5 - 1);
  EXPECT_EQ(TerminalSheet(of(Graphics::blocks, 80), 99, 1, 2).characters(), 80U / 2 - 1);
  EXPECT_EQ(TerminalSheet(of(Graphics::blocks, 80), 99, 1, 4000).characters(), 7U);
  EXPECT_EQ(TerminalSheet(of(Graphics::blocks, 3, 2), 1, 1, 0).most_side(), 2U);
}

TEST(TerminalSheet, NoCaptionControlsTheTerminal) {
  TerminalSheet sheet(of(Graphics::blocks), 1, 1, 0);
  sheet.start({2, 2});
  std::string out;
  const auto write = [&](std::string_view text) { out += text; };
  sheet.put(0, testing::SmallPicture(2, 2).view(),
            "a\x1b[2Jb\nc\x7F\xC2\x9B"
            "d\xFF",
            write);
  sheet.finish(write);
  EXPECT_THAT(out, HasSubstr("a?[2Jb?c??d?\n"));
  EXPECT_THAT(out, Not(HasSubstr("[2J\x1b")));
}

}  // namespace
}  // namespace shard::ctl
