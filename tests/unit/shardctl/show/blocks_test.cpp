// Pictures of half characters.
#include <gtest/gtest.h>

#include <string>

#include "shardctl/show/graphics.hpp"
#include "support/image/small_picture.hpp"

namespace shard::ctl {
namespace {

TEST(Blocks, ACharacterIsAPixelAboveAnother) {
  testing::SmallPicture picture(2, 3);
  picture.rgb = {255, 0, 0, 255, 0, 0, 0, 0, 255, 0, 255, 0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(blocks_line(picture.view(), 0, 4, true),
            "\x1b[38;2;255;0;0m\x1b[48;2;0;0;255m\xE2\x96\x80\x1b[48;2;0;255;0m\xE2\x96\x80\x1b[0m  ")
      << "a colour that stays is not said again";
  EXPECT_EQ(blocks_line(picture.view(), 1, 2, true),
            "\x1b[38;2;1;2;3m\x1b[49m\xE2\x96\x80\x1b[38;2;4;5;6m\xE2\x96\x80\x1b[0m")
      << "below the last row is the terminal's background";
  EXPECT_EQ(blocks_line(picture.view(), 2, 3, true), "   ");
}

TEST(Blocks, TerminalsOf256ColoursGetTheNearest) {
  testing::SmallPicture picture(3, 2);
  picture.rgb = {255, 0, 0, 128, 128, 128, 96, 140, 213, 255, 255, 255, 0, 0, 0, 9, 7, 8};
  EXPECT_EQ(blocks_line(picture.view(), 0, 3, false),
            "\x1b[38;5;196m\x1b[48;5;231m\xE2\x96\x80\x1b[38;5;244m\x1b[48;5;16m\xE2\x96\x80"
            "\x1b[38;5;68m\x1b[48;5;232m\xE2\x96\x80\x1b[0m");
}

}  // namespace
}  // namespace shard::ctl
