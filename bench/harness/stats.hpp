// Statistics of repeated measurements. Reports show the median and the range.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shard::bench {

inline constexpr double kSpreadBound = 0.10;  // above it samples are not safe to compare

struct Stats {
  std::size_t count = 0;
  double median = 0;  // the mean of the two middle values if their number is even
  double min = 0;
  double max = 0;
  // (max - min) / median; 0 when the median is 0.
  double spread() const noexcept { return median == 0 ? 0 : (max - min) / median; }
  bool known() const noexcept { return count > 0; }
  bool unsteady() const noexcept { return spread() > kSpreadBound; }
};

// Throws invalid_argument when `values` is empty or holds NaN.
Stats summarize(std::span<const double> values);

// Of one field of a list of samples: a member, or a function of a sample.
template <class Samples, class Field>
Stats stats_of(const Samples& samples, Field field) {
  std::vector<double> values;
  for (const auto& sample : samples) values.push_back(static_cast<double>(std::invoke(field, sample)));
  return summarize(values);
}
template <class Samples, class Field>
double median_of(const Samples& samples, Field field) {  // 0: there are none
  return samples.empty() ? 0 : stats_of(samples, field).median;
}

// "decode, 2 threads: samples differ by 23 % of the median (...): ..." when the spread exceeds kSpreadBound.
std::optional<std::string> spread_warning(std::string_view what, const Stats& stats);

}  // namespace shard::bench
