// What a terminal draws of sixels, by a reader of them.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <string>

#include "shardctl/show/graphics.hpp"
#include "support/image/small_picture.hpp"

namespace shard::ctl {
namespace {

struct Drawn {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::size_t colors = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::array<int, 3>> pixels;  // by (x, y), 0 to 255
};

Drawn draw(const std::string& sixels) {
  Drawn drawn;
  const std::string start = "\x1bP0;1;0q\"1;1;";
  EXPECT_TRUE(sixels.starts_with(start));
  EXPECT_TRUE(sixels.ends_with("\x1b\\"));
  std::size_t at = start.size();
  const auto number = [&] {
    std::size_t used = 0;
    const int value = std::stoi(sixels.substr(at, 12), &used);
    at += used;
    return value;
  };
  drawn.width = static_cast<std::uint32_t>(number());
  ++at;
  drawn.height = static_cast<std::uint32_t>(number());
  std::map<int, std::array<int, 3>> palette;
  std::array<int, 3> color{};
  std::uint32_t x = 0;
  std::uint32_t top = 0;
  while (at < sixels.size() - 2) {
    const char c = sixels[at++];
    int times = 1;
    char shape = c;
    if (c == '#') {
      const int which = number();
      if (sixels[at] == ';') {
        std::array<int, 4> given{};
        for (int& value : given) {
          ++at;
          value = number();
        }
        EXPECT_EQ(given[0], 2);
        palette[which] = {given[1] * 255 / 100, given[2] * 255 / 100, given[3] * 255 / 100};
      }
      EXPECT_TRUE(palette.contains(which));
      color = palette[which];
      continue;
    }
    if (c == '$' || c == '-') {
      x = 0;
      top += c == '-' ? 6 : 0;
      continue;
    }
    if (c == '!') {
      times = number();
      shape = sixels[at++];
    }
    EXPECT_TRUE(shape >= '?' && shape <= '~') << int{shape};
    for (; times > 0; --times, ++x)
      for (std::uint32_t bit = 0; bit < 6; ++bit)
        if (((shape - '?') >> bit & 1) != 0) drawn.pixels[{x, top + bit}] = color;
  }
  drawn.colors = palette.size();
  return drawn;
}

TEST(Sixel, EveryPixelIsDrawnInAboutItsColour) {
  const testing::SmallPicture picture(26, 20);  // 520 colours; the last band has two rows
  const Drawn drawn = draw(sixel_picture(picture.view()));
  EXPECT_EQ(drawn.width, 26U);
  EXPECT_EQ(drawn.height, 20U);
  EXPECT_LE(drawn.colors, 256U);
  EXPECT_GT(drawn.colors, 200U);
  ASSERT_EQ(drawn.pixels.size(), 26U * 20U) << "no pixel beside the picture";
  int worst = 0;
  for (const auto& [place, color] : drawn.pixels)
    for (std::size_t c = 0; c < 3; ++c)
      worst = std::max(worst, std::abs(color[c] - picture.at(place.first, place.second)[c]));
  EXPECT_LE(worst, 12);
}

TEST(Sixel, FewColoursAreThemselves) {
  testing::SmallPicture picture(9, 7);
  for (std::size_t i = 0; i < picture.rgb.size(); ++i) picture.rgb[i] = i / 3 % 2 == 0 ? 255 : 0;
  const Drawn drawn = draw(sixel_picture(picture.view()));
  EXPECT_EQ(drawn.colors, 2U);
  for (const auto& [place, color] : drawn.pixels)
    EXPECT_EQ(color[0], picture.at(place.first, place.second)[0]);
}

}  // namespace
}  // namespace shard::ctl
