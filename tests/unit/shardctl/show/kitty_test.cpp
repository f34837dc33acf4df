// The PNG that a terminal gets by kitty's protocol.
#include <gtest/gtest.h>

#include <regex>
#include <span>
#include <string>

#include "shard/image/decode.hpp"
#include "shardctl/show/graphics.hpp"
#include "support/image/small_picture.hpp"

namespace shard::ctl {
namespace {

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6U | static_cast<std::uint32_t>(digits.find(c));
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xFFU);
  }
  return bytes;
}

// Noise, which no PNG makes small: more than one escape code.
TEST(Kitty, TheChunksAreThePngOfThePicture) {
  testing::SmallPicture picture(70, 60);
  std::uint32_t noise = 1;
  for (std::uint8_t& value : picture.rgb)
    value = static_cast<std::uint8_t>((noise = noise * 1664525 + 7) >> 24U);
  const std::string out = kitty_picture(picture.view());
  const std::regex code("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\");
  std::string text;
  std::size_t length = 0;
  std::vector<std::string> controls;
  for (std::sregex_iterator at(out.begin(), out.end(), code), end; at != end; ++at) {
    controls.push_back((*at)[1]);
    EXPECT_LE((*at)[2].length(), 4096);
    text += (*at)[2];
    length += static_cast<std::size_t>(at->length());
  }
  EXPECT_EQ(length, out.size()) << "nothing but escape codes";
  ASSERT_GE(controls.size(), 3U);
  EXPECT_EQ(controls.front(), "a=T,f=100,q=2,C=1,m=1");
  EXPECT_EQ(controls[1], "m=1");
  EXPECT_EQ(controls.back(), "m=0");
  const std::string png = from_base64(text);
  image::Decoder decoder;
  const image::RgbView view = decoder.decode(std::as_bytes(std::span(png)), {});
  ASSERT_EQ(view.width, 70U);
  ASSERT_EQ(view.height, 60U);
  for (std::uint32_t y = 0; y < view.height; ++y)
    for (std::uint32_t i = 0; i < view.width * 3; ++i)
      ASSERT_EQ(view.data[y * view.stride_bytes + i], picture.rgb[std::size_t{y} * 70 * 3 + i]);
}

TEST(Kitty, ASmallPictureIsOneEscapeCode) {
  const std::string out = kitty_picture(testing::SmallPicture(2, 1).view());
  EXPECT_TRUE(out.starts_with("\x1b_Ga=T,f=100,q=2,C=1,m=0;")) << out;
  EXPECT_EQ(out.find('\x1b', 1), out.size() - 2);
}

}  // namespace
}  // namespace shard::ctl
