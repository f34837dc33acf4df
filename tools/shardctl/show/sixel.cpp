#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "shardctl/show/graphics.hpp"

namespace shard::ctl {
namespace {

constexpr std::size_t kColors = 256;
constexpr unsigned kChannelBits = 5;  // of each channel of the histogram
constexpr std::size_t kHistogramBins = std::size_t{1} << (3 * kChannelBits);

std::size_t bin_of(const std::uint8_t* rgb) {
  return std::size_t{rgb[0]} >> (8 - kChannelBits) << (2 * kChannelBits) |
         std::size_t{rgb[1]} >> (8 - kChannelBits) << kChannelBits |
         std::size_t{rgb[2]} >> (8 - kChannelBits);
}

unsigned channel_of(std::size_t bin, unsigned channel) {
  return static_cast<unsigned>(bin >> (kChannelBits * (2 - channel)) & ((1U << kChannelBits) - 1));
}

// Bins of the histogram that become one colour.
struct Group {
  std::vector<std::size_t> bins;
  std::uint64_t pixels = 0;
  unsigned widest = 0;  // the channel along which it extends most
  unsigned extent = 0;
};

Group group_of(std::vector<std::size_t> bins, const std::vector<std::uint32_t>& counts) {
  Group group;
  for (const std::size_t bin : bins) group.pixels += counts[bin];
  for (unsigned channel = 0; channel < 3; ++channel) {
    const auto less = [&](std::size_t a, std::size_t b) {
      return channel_of(a, channel) < channel_of(b, channel);
    };
    const auto [low, high] = std::minmax_element(bins.begin(), bins.end(), less);
    const unsigned extent = channel_of(*high, channel) - channel_of(*low, channel);
    if (extent > group.extent) {
      group.extent = extent;
      group.widest = channel;
    }
  }
  group.bins = std::move(bins);
  return group;
}

// Into two of about as many pixels each.
std::array<Group, 2> halves(Group group, const std::vector<std::uint32_t>& counts) {
  std::sort(group.bins.begin(), group.bins.end(), [&](std::size_t a, std::size_t b) {
    return channel_of(a, group.widest) < channel_of(b, group.widest);
  });
  std::uint64_t before = 0;
  std::size_t cut = 0;
  while (cut + 1 < group.bins.size() && (cut == 0 || before + counts[group.bins[cut]] / 2 < group.pixels / 2))
    before += counts[group.bins[cut++]];
  const auto middle = group.bins.begin() + static_cast<std::ptrdiff_t>(cut);
  return {group_of({group.bins.begin(), middle}, counts), group_of({middle, group.bins.end()}, counts)};
}

struct Palette {
  std::vector<std::array<unsigned, 3>> colors;  // in percent, as the protocol has them
  std::vector<std::uint16_t> of_bin;            // [kHistogramBins]
};

// Median cut (Heckbert: Color image quantization for frame buffer display, 1982).
Palette make_palette(const image::RgbView& picture) {
  std::vector<std::uint32_t> counts(kHistogramBins);
  std::vector<std::array<std::uint64_t, 3>> sums(kHistogramBins);
  for (std::uint32_t y = 0; y < picture.height; ++y) {
    for (std::uint32_t x = 0; x < picture.width; ++x) {
      const std::uint8_t* const rgb = picture.data + y * picture.stride_bytes + std::size_t{x} * 3;
      const std::size_t bin = bin_of(rgb);
      ++counts[bin];
      for (std::size_t c = 0; c < 3; ++c) sums[bin][c] += rgb[c];
    }
  }
  std::vector<std::size_t> used;
  for (std::size_t bin = 0; bin < kHistogramBins; ++bin)
    if (counts[bin] != 0) used.push_back(bin);
  std::vector<Group> groups;
  if (!used.empty()) groups.push_back(group_of(std::move(used), counts));
  while (groups.size() < kColors) {
    const auto largest = std::max_element(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
      return a.pixels * a.extent < b.pixels * b.extent;
    });
    if (largest == groups.end() || largest->extent == 0) break;
    auto [first, second] = halves(std::move(*largest), counts);
    *largest = std::move(first);
    groups.push_back(std::move(second));
  }
  Palette palette;
  palette.of_bin.resize(kHistogramBins);
  for (const Group& group : groups) {
    std::array<std::uint64_t, 3> sum{};
    for (const std::size_t bin : group.bins) {
      palette.of_bin[bin] = static_cast<std::uint16_t>(palette.colors.size());
      for (std::size_t c = 0; c < 3; ++c) sum[c] += sums[bin][c];
    }
    std::array<unsigned, 3> percent{};
    for (std::size_t c = 0; c < 3; ++c)
      percent[c] = static_cast<unsigned>((sum[c] * 100 + group.pixels * 255 / 2) / (group.pixels * 255));
    palette.colors.push_back(percent);
  }
  return palette;
}

// Runs of one character: "!5~" is "~~~~~".
std::string run_lengths(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_not_of(text[begin], begin), text.size());
    if (end - begin > 3)
      out += fmt::format("!{}{}", end - begin, text[begin]);
    else
      out.append(end - begin, text[begin]);
    begin = end;
  }
  return out;
}

}  // namespace

std::string sixel_picture(const image::RgbView& picture) {
  const Palette palette = make_palette(picture);
  // P2=1: pixels that are not set keep what is behind them. Then the shape of a pixel, and the size.
  std::string out = fmt::format("\x1bP0;1;0q\"1;1;{};{}", picture.width, picture.height);
  for (std::size_t i = 0; i < palette.colors.size(); ++i)
    out += fmt::format("#{};2;{};{};{}", i, palette.colors[i][0], palette.colors[i][1], palette.colors[i][2]);
  // Bands of six rows: for each colour a character per column, whose bits are the rows.
  std::vector<std::string> rows(palette.colors.size());
  for (std::uint32_t top = 0; top < picture.height; top += 6) {
    for (std::string& row : rows) row.clear();
    for (std::uint32_t y = top; y < std::min(top + 6, picture.height); ++y) {
      for (std::uint32_t x = 0; x < picture.width; ++x) {
        std::string& row =
            rows[palette.of_bin[bin_of(picture.data + y * picture.stride_bytes + std::size_t{x} * 3)]];
        if (row.empty()) row.assign(picture.width, '?');
        row[x] = static_cast<char>(((row[x] - '?') | 1 << (y - top)) + '?');
      }
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!rows[i].empty()) out += fmt::format("#{}{}$", i, run_lengths(rows[i]));
    out += '-';
  }
  return out + "\x1b\\";
}

}  // namespace shard::ctl
