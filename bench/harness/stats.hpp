// Statistics of repeated measurements: what is reported is the median, with the range beside it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shard::bench {

struct Stats {
  std::size_t count = 0;
  double median = 0;  // of an even number: the mean of the two in the middle
  double min = 0;
  double max = 0;
  // (max - min) / median; 0 when the median is 0.
  double spread() const noexcept { return median == 0 ? 0 : (max - min) / median; }
};

// Throws invalid_argument when `values` is empty or holds NaN.
Stats summarize(std::span<const double> values);

inline constexpr double kSpreadBound = 0.10;

// "decode, 2 threads: samples differ by 23 % of the median (...): ..." when the spread exceeds kSpreadBound.
std::optional<std::string> spread_warning(std::string_view what, const Stats& stats);

}  // namespace shard::bench
