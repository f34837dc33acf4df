// Numbers in text, the same in every locale.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

namespace shard {

// The number that `text` begins with; what follows it is left in `text`. Returns nothing if it begins with
// none, or with one that T does not hold.
template <class T>
std::optional<T> take_number(std::string_view& text) noexcept {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// All of `text` as a number, without blanks and without a '+'. Returns nothing if it is none, or one that T
// does not hold. Floating-point numbers may be "nan" and "inf".
template <class T>
std::optional<T> number_of(std::string_view text) noexcept {
  const auto value = take_number<T>(text);
  return text.empty() ? value : std::nullopt;
}

}  // namespace shard
