// Bar charts: by gnuplot where it is found, else as plain SVG.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace shard::bench {

struct Bar {
  std::string label;
  double value = 0;
  unsigned group = 0;  // bars of a group have one colour
};

struct BarChart {
  std::string title, unit;
  std::vector<std::string> groups;  // their names
  std::vector<Bar> bars;            // top to bottom
};

// At its end, of the group of that name, which is made where there is none yet.
void add_bar(BarChart& chart, std::string label, double value, const std::string& group);
// The chart as SVG: horizontal bars from the smallest power of ten on, on a logarithmic axis.
std::string to_svg(const BarChart& chart);
// What gnuplot is told, to draw it on standard output as "svg" or "png".
std::string to_gnuplot(const BarChart& chart, const std::string& format);
bool has_gnuplot();
// By the ending of `file`, .svg or .png, which needs gnuplot. Errors: invalid_argument, unsupported, io.
void write_chart(const std::filesystem::path& file, const BarChart& chart);
void check_chart_file(const std::filesystem::path& file);  // the same errors, before any work

}  // namespace shard::bench
