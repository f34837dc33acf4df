// What is known of a declared thing that has a name: an option of a loader, a parameter of an operation.
//
// A struct declares its members once, in members(): visit(name, member, Limits) for each. Checks with their
// messages, texts, and what other languages need are made from that by visitors.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace shard {

// A parameter that is drawn uniformly from [low, high].
struct Range {
  double low = 0;
  double high = 0;
  bool operator==(const Range&) const = default;
};

// What a member may be. Bounds are of numbers, of both ends of a Range and of each value of a list.
struct Limits {
  double low = std::numeric_limits<double>::lowest();
  double high = std::numeric_limits<double>::max();
  bool odd = false;
  // In Python, a single number x for a Range is (centre - x, centre + x), or without a centre (x, x).
  std::optional<double> centre{};
  // A value whose effect one can see: of a number, its lower end.
  std::optional<Range> shown{};
  bool by_name = false;     // in Python not by place
  bool required = false;    // in Python
  std::string_view none{};  // Python's word for no value, instead of None
};

// "NAME is TEXT; it must be LOW to HIGH", or nothing if the value, of which this is the text, is. NaN is not.
std::string out_of_bounds(std::string_view name, double value, const std::string& text, const Limits& limits);
std::string number_text(double value);
std::string out_of_bounds(std::string_view name, const Range& value, const Limits& limits);
// "NAME is 7; it must be none (0), center (1) or random (2)", or nothing if there is a word for the value.
std::string not_one_of(std::string_view name, std::size_t value, std::span<const std::string_view> words);
// "none", "center" or "random"
std::string quoted_words(std::span<const std::string_view> words);

// The same for a member of any type: an enumeration has its words in words_of(), a function beside it.
template <class T>
std::string violation(std::string_view name, const T& value, const Limits& limits) {
  if constexpr (std::is_enum_v<T>)
    return not_one_of(name, static_cast<std::size_t>(value), words_of(T{}));
  else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return out_of_bounds(name, static_cast<double>(value), std::to_string(value), limits);
  else if constexpr (std::is_floating_point_v<T>)
    return out_of_bounds(name, double{value}, number_text(double{value}), limits);
  else if constexpr (std::is_same_v<T, Range>)
    return out_of_bounds(name, value, limits);
  else
    return {};  // any other type has no bounds
}

}  // namespace shard
