#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "shardctl/draw/font.hpp"
#include "shardctl/show/graphics.hpp"

namespace shard::ctl {
namespace {

Color color_at(const image::RgbView& picture, std::uint32_t x, std::uint32_t y) {
  const std::uint8_t* const at = picture.data + y * picture.stride_bytes + std::size_t{x} * 3;
  return {at[0], at[1], at[2]};
}

int distance(const Color& a, const Color& b) {
  int sum = 0;
  for (std::size_t i = 0; i < 3; ++i) sum += (int{a[i]} - int{b[i]}) * (int{a[i]} - int{b[i]});
  return sum;
}

// The nearest colour of xterm's: 16 to 231 a cube of six steps, 232 to 255 grays.
unsigned xterm_color(const Color& color) {
  constexpr std::array<std::uint8_t, 6> kSteps = {0, 95, 135, 175, 215, 255};
  unsigned number = 16;
  Color in_cube{};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto nearest = std::min_element(kSteps.begin(), kSteps.end(), [&](std::uint8_t a, std::uint8_t b) {
      return std::abs(int{a} - int{color[i]}) < std::abs(int{b} - int{color[i]});
    });
    in_cube[i] = *nearest;
    number += static_cast<unsigned>(nearest - kSteps.begin()) * (i == 0 ? 36U : i == 1 ? 6U : 1U);
  }
  const int mean = (color[0] + color[1] + color[2]) / 3;
  const unsigned step = static_cast<unsigned>(std::clamp((mean - 3) / 10, 0, 23));
  const auto gray = static_cast<std::uint8_t>(8 + 10 * step);
  return distance({gray, gray, gray}, color) < distance(in_cube, color) ? 232 + step : number;
}

// `ground`: 38 for the character, 48 for what is behind it.
std::string select(unsigned ground, const std::optional<Color>& color, bool true_colors) {
  if (!color) return fmt::format("\x1b[{}m", ground + 1);  // the terminal's own
  const Color& of = *color;
  if (true_colors) return fmt::format("\x1b[{};2;{};{};{}m", ground, of[0], of[1], of[2]);
  return fmt::format("\x1b[{};5;{}m", ground, xterm_color(of));
}

}  // namespace

std::string blocks_line(const image::RgbView& picture, std::uint32_t line, std::uint32_t columns,
                        bool true_colors) {
  std::string out;
  const std::uint32_t top = 2 * line;
  const std::uint32_t width = top < picture.height ? picture.width : 0;
  std::string upper_now;
  std::string lower_now;
  for (std::uint32_t x = 0; x < width; ++x) {
    const std::string upper = select(38, color_at(picture, x, top), true_colors);
    const std::string lower =
        select(48, top + 1 < picture.height ? std::optional(color_at(picture, x, top + 1)) : std::nullopt,
               true_colors);
    if (upper != upper_now) out += upper;
    if (lower != lower_now) out += lower;
    upper_now = upper;
    lower_now = lower;
    out += "\xE2\x96\x80";  // U+2580, upper half block
  }
  if (width > 0) out += "\x1b[0m";
  out.append(columns > width ? columns - width : 0, ' ');
  return out;
}

}  // namespace shard::ctl
