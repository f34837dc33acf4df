#include <fmt/format.h>

#include <span>
#include <string_view>

#include "shardctl/show/graphics.hpp"

namespace shard::ctl {
namespace {

// RFC 4648.
std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k)
      three = three << 8U | (i + k < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kDigits[three >> (18 - 6 * k) & 63U] : '=';
  }
  return text;
}

constexpr std::size_t kMostInOne = 4096;  // of the protocol: base64 characters of one escape code

}  // namespace

std::string kitty_picture(const image::RgbView& picture) {
  const std::string text = base64(image::encode_png(picture));
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += kMostInOne) {
    // a=T: transmit and show; f=100: PNG; q=2: send no answer; C=1: leave the cursor; m=1: more follows.
    const int more = at + kMostInOne < text.size() ? 1 : 0;
    out += at == 0 ? fmt::format("\x1b_Ga=T,f=100,q=2,C=1,m={};", more) : fmt::format("\x1b_Gm={};", more);
    out += std::string_view(text).substr(at, kMostInOne);
    out += "\x1b\\";
  }
  return out;
}

}  // namespace shard::ctl
