// Pure functions of text from files, settings and answers.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace shard {

// Without spaces and ends of lines around it, or without the bytes of `blanks`.
inline std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n") {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// Changes letters of ASCII only, in every locale.
constexpr char ascii_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline std::string ascii_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = ascii_lower(c);
  return lower;
}

// Whether `text` in lower case is `lower`.
constexpr bool is_in_lower_case(std::string_view text, std::string_view lower) noexcept {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char c, char of_lower) { return ascii_lower(c) == of_lower; });
}

// Letters and digits of ASCII, and bytes of `further`. Not empty.
inline bool is_word(std::string_view text, std::string_view further) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           further.find(c) != std::string_view::npos;
  });
}

// Nothing but printing ASCII without spaces: it can be part of a header, and adds none.
inline bool is_header_word(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace shard
