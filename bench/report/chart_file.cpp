#include "report/chart_file.hpp"

#include <fmt/format.h>

#include "base/text/quote.hpp"
#include "report/svg.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"

namespace shard::bench {

void check_chart_file(const std::filesystem::path& file) {
  if (file.extension() != ".svg")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--plot {}: expected a name ending in .svg", quoted(file)));
}

void write_chart(const std::filesystem::path& file, const PageChart& chart) {
  check_chart_file(file);
  publish_file(file, chart_file(chart));
}

}  // namespace shard::bench
