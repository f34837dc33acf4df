#include "shard/schema.hpp"

#include <fmt/format.h>

#include <cmath>

namespace shard {

namespace {

std::string listed(std::span<const std::string_view> words, auto&& one) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + one(i);
  return text;
}

}  // namespace

// Whole numbers without a point, and without an exponent where they are not longer.
std::string number_text(double value) {
  if (std::abs(value) < 1e15 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{}", value);
}

std::string out_of_bounds(std::string_view name, double value, const std::string& text,
                          const Limits& limits) {
  const bool within = value >= limits.low && value <= limits.high;  // false for NaN
  if (within && (!limits.odd || std::fmod(value, 2) == 1)) return {};
  if (limits.low == Limits{}.low)
    return fmt::format("{} is {}; it must be at most {}", name, text, number_text(limits.high));
  if (limits.high == Limits{}.high)
    return fmt::format("{} is {}; it must be at least {}", name, text, number_text(limits.low));
  return fmt::format("{} is {}; it must be {}{} to {}", name, text, limits.odd ? "odd, " : "",
                     number_text(limits.low), number_text(limits.high));
}

std::string out_of_bounds(std::string_view name, const Range& value, const Limits& limits) {
  if (value.low >= limits.low && value.low <= value.high && value.high <= limits.high) return {};
  return fmt::format("{} is [{}, {}]; it must be {} <= low <= high <= {}", name, value.low, value.high,
                     limits.low, limits.high);
}

std::string not_one_of(std::string_view name, std::size_t value, std::span<const std::string_view> words) {
  if (value < words.size()) return {};
  return fmt::format("{} is {}; it must be {}", name, value,
                     listed(words, [&](std::size_t i) { return fmt::format("{} ({})", words[i], i); }));
}

std::string quoted_words(std::span<const std::string_view> words) {
  return listed(words, [&](std::size_t i) { return fmt::format("\"{}\"", words[i]); });
}

}  // namespace shard
