#include "base/text/size.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/bytes.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "base/text/words.hpp"

namespace shard {

namespace {

// 0 when `unit` (lower case) is none.
double unit_factor(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  constexpr std::string_view kLetters = "kmgtp";
  const std::size_t power = kLetters.find(unit[0]);
  if (power == std::string_view::npos) return 0;
  const std::string_view rest = unit.substr(1);
  if (rest.empty() || rest == "ib" || rest == "i") return std::pow(1024.0, static_cast<double>(power + 1));
  if (rest == "b") return std::pow(1000.0, static_cast<double>(power + 1));
  return 0;
}

}  // namespace

std::uint64_t parse_size(std::string_view text) {
  const auto refuse = [&](const char* why) {
    return Error(ErrorCode::invalid_argument,
                 fmt::format("size {} {}: write a number of bytes, or one with a unit such as 256MiB or 1GB",
                             quoted(text), why));
  };
  std::size_t number_end = 0;
  while (number_end < text.size() &&
         ((text[number_end] >= '0' && text[number_end] <= '9') || text[number_end] == '.')) {
    ++number_end;
  }
  const std::string_view number = text.substr(0, number_end);
  std::string unit;
  for (const char c : text.substr(number_end)) {
    if (c != ' ' || !unit.empty()) unit += ascii_lower(c);
  }
  const double factor = unit_factor(unit);
  if (number.empty() || factor == 0) throw refuse("is not a size");
  if (number.find('.') == std::string_view::npos) {  // whole numbers are exact up to 64 bits
    const auto value = number_of<std::uint64_t>(number);
    const auto product = value ? checked_mul(*value, static_cast<std::uint64_t>(factor)) : std::nullopt;
    if (!product) throw refuse("does not fit into 64 bits");
    return *product;
  }
  const auto value = number_of<double>(number);
  if (!value) throw refuse("is not a size");
  const double product = *value * factor;
  if (product >= 18446744073709551616.0) throw refuse("does not fit into 64 bits");
  return static_cast<std::uint64_t>(product);
}

}  // namespace shard
