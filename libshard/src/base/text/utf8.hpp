// UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace shard {

// Length of the well-formed sequence at `at`: 1 to 4, or 0 when there is none. Defined in keys.cpp.
std::size_t utf8_sequence_length(std::string_view text, std::size_t at) noexcept;
bool is_utf8(std::string_view text) noexcept;

// Some editors and spreadsheets write a byte order mark before the text.
constexpr std::string_view without_byte_order_mark(std::string_view text) noexcept {
  return text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text;
}

}  // namespace shard
