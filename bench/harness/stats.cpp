#include "harness/stats.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/core.h>

#include "shard/error.hpp"

namespace shard::bench {

Stats summarize(std::span<const double> values) {
  if (values.empty())
    throw Error(ErrorCode::invalid_argument, "statistics of no samples: measure at least once");
  if (std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); })) {
    throw Error(ErrorCode::invalid_argument, "statistics of samples with a NaN among them");
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  Stats stats;
  stats.count = sorted.size();
  stats.median = sorted.size() % 2 == 1 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
  stats.min = sorted.front();
  stats.max = sorted.back();
  return stats;
}

std::optional<std::string> spread_warning(std::string_view what, const Stats& stats) {
  if (!stats.unsteady()) return std::nullopt;
  return fmt::format(
      "{}: the {} samples differ by {:.0f} % of their median: end other programs, or raise --repeat", what,
      stats.count, 100 * stats.spread());
}

}  // namespace shard::bench
