#include "report/chart_file.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "base/text/quote.hpp"
#include "harness/temp_folder.hpp"
#include "report/style.hpp"
#include "report/svg.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::bench {
namespace {

// Of gnuplot's strings in double quotes, without its markup.
std::string gnuplot_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c != '\n') out += c;
  }
  return out + "\"";
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

std::string to_gnuplot(const PageChart& chart) {
  const std::size_t rows = chart.bars.size();
  double least = 1e300;
  for (const PageBar& bar : chart.bars)
    if (bar.value > 0) least = std::min(least, bar.value);
  std::string script = fmt::format(
      "set terminal pngcairo size 960,{}\nset title {} noenhanced\nset xlabel {} noenhanced\nset logscale x\n"
      "set yrange [-0.7:{}]\nset grid x\nset key below\nset style fill solid\nset ytics noenhanced (",
      160 + 22 * rows, gnuplot_text(chart.title), gnuplot_text(chart.unit), static_cast<double>(rows) - 0.3);
  for (std::size_t i = 0; i < rows; ++i)
    script += fmt::format("{}{} {}", i == 0 ? "" : ", ", gnuplot_text(chart.bars[i].label), rows - 1 - i);
  script += ")\nplot ";
  std::string data;
  for (unsigned g = 0; g < std::max<std::size_t>(1, chart.groups.size()); ++g) {
    std::string points;
    for (std::size_t i = 0; i < rows; ++i)
      if (chart.bars[i].group == g && chart.bars[i].value > 0)
        points += fmt::format("{} {}\n", rows - 1 - i, chart.bars[i].value);
    if (points.empty()) continue;
    script += fmt::format(
        "{}'-' using 2:1:({}):2:($1-0.4):($1+0.4) with boxxyerror lc rgb '{}' title {} noenhanced",
        data.empty() ? "" : ", ", 0.5 * least, kColours[g % kPageColours],
        gnuplot_text(chart.groups.empty() ? "" : chart.groups[g]));
    data += points + "e\n";
  }
  return script + "\n" + data;
}

bool has_gnuplot() { return std::system("command -v gnuplot >/dev/null 2>&1") == 0; }

void check_chart_file(const std::filesystem::path& file) {
  if (file.extension() == ".svg") return;
  if (file.extension() != ".png")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--plot {}: expected a name ending in .svg or .png", quoted(file)));
  if (!has_gnuplot())
    throw Error(
        ErrorCode::unsupported,
        fmt::format("--plot {}: only gnuplot draws PNG, and it is not installed: take .svg", quoted(file)));
}

void write_chart(const std::filesystem::path& file, const PageChart& chart) {
  check_chart_file(file);
  publish_file(file, file.extension() == ".svg" ? chart_file(chart) : gnuplot_output(to_gnuplot(chart)));
}

}  // namespace shard::bench
