// What is read from a terminal's answers.
#include "shardctl/show/terminal.hpp"

#include <gtest/gtest.h>

#include <string>

namespace shard::ctl {
namespace {

TEST(TerminalAnswers, AreRead) {
  const TerminalAnswer kitty = parse_terminal_answer("\x1b_Gi=31;OK\x1b\\\x1b[6;21;10t\x1b[?62;c");
  EXPECT_TRUE(kitty.kitty && kitty.complete && !kitty.sixel);
  EXPECT_EQ(kitty.cell_width, 10U);
  EXPECT_EQ(kitty.cell_height, 21U);
  const TerminalAnswer foot = parse_terminal_answer("\x1b[?62;4;22;28c");
  EXPECT_TRUE(foot.sixel && foot.complete && !foot.kitty);
  EXPECT_EQ(foot.cell_width, 0U);
}

TEST(TerminalAnswers, ATerminalWithoutPicturesIsNoneOfThem) {
  // xterm; the VT132, which is number 4 and has no sixels; and kitty's protocol with an error.
  for (const char* const text :
       {"\x1b[?64;1;2;6;9;15;18;21;22c", "\x1b[?4;6c", "\x1b_Gi=31;ENOTSUPPORTED:no\x1b\\\x1b[?62c"}) {
    const TerminalAnswer answer = parse_terminal_answer(text);
    EXPECT_TRUE(answer.complete) << text;
    EXPECT_FALSE(answer.kitty || answer.sixel) << text;
  }
}

TEST(TerminalAnswers, KeysAmongThemAndHalfOfThemAreNoAnswer) {
  const std::string whole = "ls\r\x1b[A\x1b_Gi=31;OK\x1b\\q\x1b[6;16;8t\x1b[?62;4c";
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_terminal_answer(whole.substr(0, size)).complete) << size;
  EXPECT_TRUE(parse_terminal_answer(whole).complete && parse_terminal_answer(whole).kitty);
}

TEST(TerminalAnswers, SizesBeyondReasonAreNotTaken) {
  for (const char* const text : {"\x1b[6;0;8t", "\x1b[6;16;0t", "\x1b[6;9999999999;8t", "\x1b[6;16;4000t",
                                 "\x1b[4;600;800t", "\x1b[6;16t"})
    EXPECT_EQ(parse_terminal_answer(text).cell_width, 0U) << text;
}

}  // namespace
}  // namespace shard::ctl
