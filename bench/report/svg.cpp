#include "report/svg.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/section.hpp"
#include "report/style.hpp"

namespace shard::bench {
namespace {

constexpr double kWidth = 960, kLeft = 400, kRoom = 450, kRow = 24, kTop = 34;
constexpr std::size_t kLabel = 52;  // characters that fit; the table has the rest

struct Axis {
  bool logarithmic = false;
  double from = 0, to = 1;
  std::vector<double> ticks;
  double place(double value) const {
    if (!std::isfinite(value)) return 0;
    if (logarithmic) value = value > 0 ? std::log10(value) : from;
    return kRoom * std::clamp((value - from) / (to - from), 0.0, 1.0);
  }
};

// 1, 2 or 5 times a power of ten, of which about five make `most`.
double step_for(double most) {
  const double rough = most / 5;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double times : {1.0, 2.0, 5.0})
    if (rough <= times * power) return times * power;
  return 10 * power;
}

Axis axis_of(const PageChart& chart) {
  double least = 1e300;
  double most = 0;
  for (const PageBar& bar : chart.bars) {
    for (const double value : {bar.value, bar.limit}) {
      if (!(value > 0) || !std::isfinite(value)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  Axis axis;
  if (most <= 0) return axis;
  axis.logarithmic = most > 100 * least;
  if (axis.logarithmic) {
    axis.from = std::floor(std::log10(least));
    axis.to = std::ceil(std::log10(most));
    for (double decade = axis.from; decade <= axis.to; ++decade) axis.ticks.push_back(std::pow(10.0, decade));
  } else {
    const double step = step_for(most);
    axis.to = most;
    for (int i = 0; i * step <= most * 1.0001; ++i) axis.ticks.push_back(i * step);
  }
  return axis;
}

// Without the zeros that say nothing.
std::string tick_text(double value) {
  std::string text = people(value);
  if (text.find('.') == std::string::npos || text.find('e') != std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

// Whole code points, as many as fit.
std::string fitting(const std::string& text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U) continue;
    if (++count == kLabel) return text.substr(0, i) + "…";
  }
  return text;
}

std::string bar_svg(const PageBar& bar, const Axis& axis, double y) {
  const double width = std::max(axis.place(bar.value), 1.0);
  const double mark = bar.limit > 0 ? axis.place(bar.limit) : -1;
  std::string svg = fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect class=\"g{}{}\" x=\"{}\" y=\"{}\" "
      "width=\"{:.1f}\" height=\"{}\"/>",
      kLeft - 8, y + 16, escaped(fitting(bar.label + (bar.emulated ? " (emulated)" : ""))),
      bar.group % kPageColours, bar.emulated ? " assumed" : "", kLeft, y + 4, width, kRow - 8);
  if (mark >= 0)
    svg += fmt::format("<path class=\"limit\" d=\"M{:.1f} {}v{}\"/>", kLeft + mark, y + 1, kRow - 2);
  const bool beyond = mark > width && mark < width + 64;  // the figure would lie on the mark
  return svg + fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n",
                           kLeft + (beyond ? mark : std::max(width, mark < width ? mark : 0.0)) + 7, y + 16,
                           people(bar.value));
}

std::string legend_svg(const PageChart& chart, double y) {
  std::string svg;
  double x = kLeft;
  const auto entry = [&](const std::string& sign, const std::string& name) {
    const double width = 34 + 7.2 * static_cast<double>(name.size());
    if (x > kLeft && x + width > kWidth) {
      x = kLeft;
      y += 20;
    }
    svg += fmt::format("<g transform=\"translate({} {})\">{}<text x=\"20\" y=\"11\">{}</text></g>\n", x, y,
                       sign, escaped(name));
    x += width;
  };
  if (chart.groups.size() > 1)
    for (unsigned i = 0; i < chart.groups.size(); ++i)
      entry(fmt::format("<rect class=\"g{}\" width=\"13\" height=\"13\"/>", i % kPageColours),
            chart.groups[i]);
  const auto any = [&](auto which) { return std::any_of(chart.bars.begin(), chart.bars.end(), which); };
  if (any([](const PageBar& bar) { return bar.limit > 0; }))
    entry("<path class=\"limit\" d=\"M7 -2v17\"/>", "its limit");
  if (any([](const PageBar& bar) { return bar.emulated; }))
    entry("<rect class=\"g6 assumed\" width=\"13\" height=\"13\"/>", "emulated");
  return svg;
}

// `inside`: what stands before everything else.
std::string svg_of(const PageChart& chart, const std::string& id, const std::string& attributes,
                   const std::string& inside) {
  const Axis axis = axis_of(chart);
  const double bottom = kTop + kRow * static_cast<double>(chart.bars.size());
  const double lines = 1 + static_cast<double>(chart.groups.size() / 3);
  const double height = bottom + 44 + 20 * lines;
  std::string description = fmt::format("{}:", chart.unit);
  for (const PageBar& bar : chart.bars)
    description += fmt::format(" {}{} {}{};", bar.label, bar.emulated ? " (emulated)" : "", people(bar.value),
                               bar.limit > 0 ? fmt::format(" of {}", people(bar.limit)) : "");
  std::string svg = fmt::format(
      "<svg {6} viewBox=\"0 0 {1} {2}\">\n{7}"
      "<title id=\"{0}-t\">{3}</title>\n<desc id=\"{0}-d\">{4}</desc>\n<text x=\"{5}\" y=\"18\" "
      "font-weight=\"600\" style=\"font-size:15px\">{3}</text>\n",
      id, kWidth, height, escaped(chart.title), escaped(description), kLeft, attributes, inside);
  for (const double tick : axis.ticks) {
    const double x = kLeft + axis.place(tick);
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text class=\"faint\" x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4}</text>\n",
        x, kTop - 4, bottom + 2, bottom + 17, tick_text(tick));
  }
  svg += fmt::format("<text class=\"faint\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}{}</text>\n",
                     kLeft + kRoom / 2, bottom + 34, escaped(chart.unit),
                     axis.logarithmic ? " (logarithmic)" : "");
  double y = kTop;
  for (const PageBar& bar : chart.bars) {
    svg += bar_svg(bar, axis, y);
    y += kRow;
  }
  return svg + legend_svg(chart, bottom + 44) + "</svg>\n";
}

}  // namespace

unsigned PageChart::group(const std::string& name) {
  const auto at = std::find(groups.begin(), groups.end(), name) - groups.begin();
  if (static_cast<std::size_t>(at) == groups.size()) groups.push_back(name);
  return static_cast<unsigned>(at);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t')
      out += c;
  }
  return out;
}

std::string chart_figure(const PageChart& chart, const std::string& id) {
  if (chart.bars.empty()) return {};
  const std::string attributes = fmt::format("role=\"img\" aria-labelledby=\"{0}-t {0}-d\"", id);
  return "<figure>\n" + svg_of(chart, id, attributes, "") + "</figure>\n";
}

std::string chart_file(const PageChart& chart) {
  const std::string ground = "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  return svg_of(chart, "chart", "xmlns=\"http://www.w3.org/2000/svg\"",
                fmt::format("<style>\n{}</style>\n{}", kChartStyle, ground));
}

}  // namespace shard::bench
