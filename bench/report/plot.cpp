#include "report/plot.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "harness/temp_folder.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

constexpr std::array<const char*, 8> kColours{"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                              "#66ccee", "#aa3377", "#bbbbbb", "#997700"};

const char* colour(unsigned group) { return kColours[group % kColours.size()]; }

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// Of gnuplot's strings in double quotes, without its markup.
std::string gnuplot_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c != '\n') out += c;
  }
  return out + "\"";
}

std::string number(double value) {
  return value < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

// Powers of ten around the values.
std::pair<int, int> decades(const BarChart& chart) {
  double least = 1e300;
  double most = 0;
  for (const Bar& bar : chart.bars) {
    if (!(bar.value > 0)) continue;
    least = std::min(least, bar.value);
    most = std::max(most, bar.value);
  }
  if (most <= 0) return {0, 1};
  const int low = static_cast<int>(std::floor(std::log10(least))) - (least == most ? 1 : 0);
  return {low, std::max(low + 1, static_cast<int>(std::ceil(std::log10(most))))};
}

std::string gnuplot_output(const std::string& script) {
  const TempFolder folder({});
  const std::filesystem::path file = folder.path() / "chart.gp";
  std::ofstream(file, std::ios::binary) << script;
  std::FILE* const pipe = ::popen(fmt::format("gnuplot '{}' 2>/dev/null", file.string()).c_str(), "re");
  if (pipe == nullptr) throw Error(ErrorCode::resource, "gnuplot cannot be started");
  std::string output;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || output.empty())
    throw Error(ErrorCode::io, "gnuplot did not draw the chart");
  return output;
}

}  // namespace

void add_bar(BarChart& chart, std::string label, double value, const std::string& group) {
  const auto at = std::find(chart.groups.begin(), chart.groups.end(), group) - chart.groups.begin();
  if (static_cast<std::size_t>(at) == chart.groups.size()) chart.groups.push_back(group);
  chart.bars.push_back({std::move(label), value, static_cast<unsigned>(at)});
}

std::string to_svg(const BarChart& chart) {
  constexpr double kLeft = 360, kWidth = 480, kRow = 22, kTop = 44;
  const auto [low, high] = decades(chart);
  const double height = kTop + kRow * static_cast<double>(chart.bars.size() + chart.groups.size()) + 48;
  const auto place = [&, low = low, high = high](double value) {
    const double share = (std::log10(value) - low) / (high - low);
    return kWidth * std::clamp(share, 0.0, 1.0);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"{0}\" viewBox=\"0 0 960 {0}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"960\" height=\"{0}\" fill=\"#ffffff\"/>\n"
      "<text x=\"16\" y=\"24\" font-size=\"15\">{1}</text>\n",
      height, xml(chart.title));
  const double bottom = kTop + kRow * static_cast<double>(chart.bars.size());
  for (int decade = low; decade <= high; ++decade) {
    const double x = kLeft + place(std::pow(10.0, decade));
    svg += fmt::format(
        "<path d=\"M{0} {1}V{2}\" stroke=\"#cccccc\"/><text x=\"{0}\" y=\"{3}\" "
        "text-anchor=\"middle\">1e{4}</text>\n",
        x, kTop, bottom, bottom + 16, decade);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{} (logarithmic)</text>\n",
                     kLeft + kWidth / 2, bottom + 34, xml(chart.unit));
  double y = kTop;
  for (const Bar& bar : chart.bars) {
    const double width = bar.value > 0 ? std::max(place(bar.value), 1.0) : 0;
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" "
        "height=\"{}\" fill=\"{}\"/><text x=\"{:.1f}\" y=\"{}\">{}</text>\n",
        kLeft - 8, y + 15, xml(bar.label), kLeft, y + 3, width, kRow - 6, colour(bar.group),
        kLeft + width + 6, y + 15, number(bar.value));
    y += kRow;
  }
  y += 44;
  for (unsigned i = 0; i < chart.groups.size(); ++i, y += kRow)
    svg += fmt::format(
        "<rect x=\"16\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"34\" y=\"{}\">{}</text>\n",
        y - 6, colour(i), y + 5, xml(chart.groups[i]));
  return svg + "</svg>\n";
}

std::string to_gnuplot(const BarChart& chart, const std::string& format) {
  const auto [low, high] = decades(chart);
  const std::size_t rows = chart.bars.size();
  std::string script = fmt::format(
      "set terminal {} size 960,{} {}\nset title {} noenhanced\nset xlabel {} noenhanced\nset logscale x\n"
      "set xrange [1e{}:1e{}]\nset yrange [-0.7:{}]\nset grid x\nset key below\nset style fill solid\n"
      "set ytics noenhanced (",
      format == "png" ? "pngcairo" : "svg", 160 + 22 * rows, format == "png" ? "" : "background '#ffffff'",
      gnuplot_text(chart.title), gnuplot_text(chart.unit), low, high, static_cast<double>(rows) - 0.3);
  for (std::size_t i = 0; i < rows; ++i)
    script += fmt::format("{}{} {}", i == 0 ? "" : ", ", gnuplot_text(chart.bars[i].label), rows - 1 - i);
  script += ")\nplot ";
  std::string data;
  for (unsigned g = 0; g < chart.groups.size(); ++g) {
    std::string points;
    for (std::size_t i = 0; i < rows; ++i)
      if (chart.bars[i].group == g && chart.bars[i].value > 0)
        points += fmt::format("{} {}\n", rows - 1 - i, chart.bars[i].value);
    if (points.empty()) continue;
    script += fmt::format(
        "{}'-' using 2:1:(1e{}):2:($1-0.4):($1+0.4) with boxxyerror lc rgb '{}' title {} noenhanced",
        data.empty() ? "" : ", ", low, colour(g), gnuplot_text(chart.groups[g]));
    data += points + "e\n";
  }
  return script + "\n" + data;
}

bool has_gnuplot() {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (!folder.empty() && ::access((std::string(folder) + "/gnuplot").c_str(), X_OK) == 0) return true;
  }
  return false;
}

void check_chart_file(const std::filesystem::path& file) {
  if (file.extension() == ".svg") return;
  if (file.extension() != ".png")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--plot '{}': expected a name ending in .svg or .png", file.string()));
  if (!has_gnuplot())
    throw Error(ErrorCode::unsupported,
                fmt::format("--plot '{}': only gnuplot draws PNG, and it is not installed: take .svg",
                            file.string()));
}

void write_chart(const std::filesystem::path& file, const BarChart& chart) {
  check_chart_file(file);
  if (has_gnuplot()) {
    try {
      publish_file(file, gnuplot_output(to_gnuplot(chart, file.extension() == ".png" ? "png" : "svg")));
      return;
    } catch (const Error&) {
      if (file.extension() == ".png") throw;
    }
  }
  publish_file(file, to_svg(chart));
}

}  // namespace shard::bench
