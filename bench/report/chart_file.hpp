// A chart in a file, as SVG.
#pragma once

#include <filesystem>

#include "report/page.hpp"

namespace shard::bench {

// Errors: invalid_argument (the name does not end in .svg), io.
void write_chart(const std::filesystem::path& file, const PageChart& chart);
void check_chart_file(const std::filesystem::path& file);  // the same error, before any work

}  // namespace shard::bench
