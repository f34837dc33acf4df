#include "shard/keys.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

bool is_plain(unsigned char c) noexcept { return c >= 0x20 && c != 0x7f && c != '\\'; }

bool is_plain_ascii(unsigned char c) noexcept { return c < 0x80 && is_plain(c); }

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

[[noreturn]] void refuse_key(std::string_view key, std::size_t at, std::string_view why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("key {} is not an escaped key: {} at byte {}", quoted(key), why, at));
}

}  // namespace

std::size_t utf8_sequence_length(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (at >= text.size()) return 0;
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;  // continuation byte, or overlong
  if (lead < 0xe0) return continues(1) ? 2 : 0;
  if (lead < 0xf0) {
    if (!continues(1) || !continues(2)) return 0;
    if (lead == 0xe0 && byte(1) < 0xa0) return 0;   // overlong
    if (lead == 0xed && byte(1) >= 0xa0) return 0;  // surrogate
    return 3;
  }
  if (lead > 0xf4 || !continues(1) || !continues(2) || !continues(3)) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;   // overlong
  if (lead == 0xf4 && byte(1) >= 0x90) return 0;  // above U+10FFFF
  return 4;
}

bool is_utf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_sequence_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

namespace {

// Hands the escaped form of `raw_bytes` to `take`, piece by piece.
template <class Take>
void escape(std::string_view raw_bytes, const Take& take) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t i = 0; i < raw_bytes.size();) {
    const auto c = static_cast<unsigned char>(raw_bytes[i]);
    std::size_t end = i;  // of the plain characters from here on
    while (end < raw_bytes.size() && is_plain_ascii(static_cast<unsigned char>(raw_bytes[end]))) ++end;
    if (end > i) {
      take(raw_bytes.substr(i, end - i));
      i = end;
      continue;
    }
    const std::size_t length = utf8_sequence_length(raw_bytes, i);
    if (length > 1) {
      take(raw_bytes.substr(i, length));
      i += length;
    } else {
      const char escaped[] = {'\\', 'x', kDigits[c >> 4U], kDigits[c & 15U]};
      take(std::string_view(escaped, sizeof escaped));
      ++i;
    }
  }
}

// Compares without a copy of the key, which may be as long as a file.
bool is_escaped_form(std::string_view raw_bytes, std::string_view key) {
  bool same = true;
  std::size_t at = 0;
  escape(raw_bytes, [&](std::string_view piece) {
    same = same && key.substr(std::min(at, key.size()), piece.size()) == piece;
    at += piece.size();
  });
  return same && at == key.size();
}

}  // namespace

std::string escape_key(std::string_view raw_bytes) {
  std::string key;
  key.reserve(raw_bytes.size());
  escape(raw_bytes, [&](std::string_view piece) { key += piece; });
  return key;
}

std::string unescape_key(std::string_view key) {
  std::string raw;
  raw.reserve(key.size());
  for (std::size_t i = 0; i < key.size();) {
    if (key[i] == '\\') {
      const int high = i + 3 < key.size() && key[i + 1] == 'x' ? hex_value(key[i + 2]) : -1;
      const int low = high >= 0 ? hex_value(key[i + 3]) : -1;
      if (low < 0) refuse_key(key, i, "a backslash that is not \\xHH with lower-case digits");
      raw += static_cast<char>(high << 4 | low);
      i += 4;
      continue;
    }
    const std::size_t length = utf8_sequence_length(key, i);
    if (length == 0) refuse_key(key, i, "invalid UTF-8");
    if (length == 1 && !is_plain(static_cast<unsigned char>(key[i])))
      refuse_key(key, i, "a control character");
    raw.append(key, i, length);
    i += length;
  }
  // Escapes that were not needed (\x61, or two halves of a valid character) would give one input two keys.
  if (!is_escaped_form(raw, key)) refuse_key(key, 0, "an escape that is not needed");
  return raw;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

}  // namespace shard
