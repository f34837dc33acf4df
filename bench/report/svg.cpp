#include "report/svg.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "report/section.hpp"
#include "report/style.hpp"

namespace shard::bench {
namespace {

constexpr double kTop = 34, kBar = 16;
constexpr std::size_t kLabel = 52;  // characters that fit; the table has the rest

// Where things stand, in pixels at full size: bars of up to `room` from `left` on. Labels stand left of their
// bars, or above them.
struct Form {
  double width, left, room, row;
  bool labels_above;
};
constexpr Form kWide{960, 400, 450, 24, false};
constexpr Form kNarrow{360, 4, 280, 44, true};  // for phones

struct Axis {
  double room = 0;
  bool logarithmic = false;
  double from = 0, to = 1;
  std::vector<double> ticks;
  double place(double value) const {
    if (!std::isfinite(value)) return 0;
    if (logarithmic) value = value > 0 ? std::log10(value) : from;
    return room * std::clamp((value - from) / (to - from), 0.0, 1.0);
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

Axis axis_of(const PageChart& chart, const Form& form) {
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
  axis.room = form.room;
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

std::string bar_svg(const PageBar& bar, const Axis& axis, const Form& form, double y) {
  const double width = std::max(axis.place(bar.value), 1.0);
  const double mark = bar.limit > 0 ? axis.place(bar.limit) : -1;
  const std::string label = escaped(fitting(bar.label + (bar.emulated ? " (emulated)" : "")));
  std::string svg = form.labels_above
                        ? fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", form.left, y + 14, label)
                        : fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", form.left - 8,
                                      y + 16, label);
  y += form.row - kBar - 8;  // the last part of the row is the bar's
  svg += fmt::format("<rect class=\"g{}{}\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>",
                     bar.group % kPageColours, bar.emulated ? " assumed" : "", form.left, y + 4, width, kBar);
  if (mark >= 0)
    svg += fmt::format("<path class=\"limit\" d=\"M{:.1f} {}v{}\"/>", form.left + mark, y + 1, kBar + 6);
  const bool beyond = mark > width && mark < width + 64;  // the figure would lie on the mark
  return svg + fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n",
                           form.left + (beyond ? mark : std::max(width, mark < width ? mark : 0.0)) + 7,
                           y + 16, people(bar.value));
}

// Moves `y` to what follows.
std::string legend_svg(const PageChart& chart, const Form& form, double& y) {
  std::string svg;
  double x = form.left;
  const auto entry = [&](const std::string& sign, const std::string& name) {
    const double width = 34 + 7.2 * static_cast<double>(name.size());
    if (x > form.left && x + width > form.width) {
      x = form.left;
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
  y += 20;
  return svg;
}

// `inside`: what stands before everything else.
std::string svg_of(const PageChart& chart, const Form& form, const std::string& id,
                   const std::string& attributes, const std::string& inside) {
  const Axis axis = axis_of(chart, form);
  const double bottom = kTop + form.row * static_cast<double>(chart.bars.size());
  double height = bottom + 44;
  const std::string legend = legend_svg(chart, form, height);
  std::string description = fmt::format("{}:", chart.unit);
  for (const PageBar& bar : chart.bars)
    description += fmt::format(" {}{} {}{};", bar.label, bar.emulated ? " (emulated)" : "", people(bar.value),
                               bar.limit > 0 ? fmt::format(" of {}", people(bar.limit)) : "");
  std::string svg = fmt::format(
      "<svg {6} viewBox=\"0 0 {1} {2}\">\n{7}"
      "<title id=\"{0}-t\">{3}</title>\n<desc id=\"{0}-d\">{4}</desc>\n<text x=\"{5}\" y=\"18\" "
      "font-weight=\"600\" style=\"font-size:15px\">{3}</text>\n",
      id, form.width, height, escaped(chart.title), escaped(description), form.left, attributes, inside);
  for (const double tick : axis.ticks) {
    const double x = form.left + axis.place(tick);
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text class=\"faint\" x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4}</text>\n",
        x, kTop - 4, bottom + 2, bottom + 17, tick_text(tick));
  }
  svg += fmt::format("<text class=\"faint\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}{}</text>\n",
                     form.left + form.room / 2, bottom + 34, escaped(chart.unit),
                     axis.logarithmic ? " (logarithmic)" : "");
  double y = kTop;
  for (const PageBar& bar : chart.bars) {
    svg += bar_svg(bar, axis, form, y);
    y += form.row;
  }
  return svg + legend + "</svg>\n";
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
  std::string figure = "<figure>\n";
  for (const auto& [form, name, suffix] :
       {std::tuple{kWide, "wide", ""}, std::tuple{kNarrow, "narrow", "-n"}}) {
    const std::string attributes =
        fmt::format("class=\"{0}\" role=\"img\" aria-labelledby=\"{1}{2}-t {1}{2}-d\"", name, id, suffix);
    figure += svg_of(chart, form, id + suffix, attributes, "");
  }
  return figure + "</figure>\n";
}

std::string chart_file(const PageChart& chart) {
  const std::string ground = "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  return svg_of(chart, kWide, "chart", "xmlns=\"http://www.w3.org/2000/svg\"",
                fmt::format("<style>\n{}</style>\n{}", kChartStyle, ground));
}

}  // namespace shard::bench
