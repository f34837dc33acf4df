// Numbers as tables of text have them, in every locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/text/number.hpp"

namespace shard::convert {

// Digits, perhaps with one sign in front: the value may be of any size.
inline bool is_whole_text(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Nothing: it is no number, or none that T holds. Floating-point numbers may be "nan" and "inf".
template <class T>
std::optional<T> parse_number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  return number_of<T>(text);
}

// Whether `stored` is the number that `whole`, of which is_whole_text() is true, says.
inline bool is_exactly(std::string_view whole, double stored) {
  if (whole.starts_with('+') || whole.starts_with('-')) whole.remove_prefix(1);
  const auto value = parse_number<std::uint64_t>(whole);
  const double size = stored < 0 ? -stored : stored;
  constexpr double kBeyond = 18446744073709551616.0;  // 2^64
  return value && size < kBeyond && static_cast<std::uint64_t>(size) == *value;
}

}  // namespace shard::convert
