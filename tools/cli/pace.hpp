// Pace: how fast a count grows, for a line of progress. Nothing is said until it has been watched for half a
// second: over less, a first handful of items looks like millions a second.
#pragma once

#include <cstdint>
#include <optional>

namespace shard::cli {

class Pace {
 public:
  static constexpr double kSettleSeconds = 0.5;

  // `count` so far at `seconds` on a clock that only goes forward.
  Pace(double seconds, std::uint64_t count) noexcept : start_(seconds), count_(count) {}

  // Per second since the start; nothing while that is less than kSettleSeconds ago.
  std::optional<double> rate(double seconds, std::uint64_t count) const noexcept {
    if (seconds - start_ < kSettleSeconds || count < count_) return std::nullopt;
    return static_cast<double>(count - count_) / (seconds - start_);
  }

 private:
  double start_;
  std::uint64_t count_;
};

}  // namespace shard::cli
