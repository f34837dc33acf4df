// A chart in a file: SVG by ourselves, PNG by gnuplot where it is installed.
#pragma once

#include <filesystem>
#include <string>

#include "report/page.hpp"

namespace shard::bench {

// The script with which gnuplot draws the chart on standard output as PNG.
std::string to_gnuplot(const PageChart& chart);
bool has_gnuplot();
// By the ending of `file`, .svg or .png. Errors: invalid_argument, unsupported (no gnuplot), io.
void write_chart(const std::filesystem::path& file, const PageChart& chart);
void check_chart_file(const std::filesystem::path& file);  // the same errors, before any work

}  // namespace shard::bench
