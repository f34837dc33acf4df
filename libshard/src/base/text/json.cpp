#include "base/text/json.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text/utf8.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

// Whether one of eight bytes cannot stand for itself inside a string: a quote, a backslash, below 0x20, or
// above 0x7f.
bool has_special(std::uint64_t eight) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  constexpr std::uint64_t kHigh = 0x8080808080808080U;
  const auto has_zero = [](std::uint64_t v) { return (v - kOnes) & ~v & kHigh; };
  return (((eight - kOnes * 0x20) & ~eight & kHigh) | (eight & kHigh) | has_zero(eight ^ kOnes * '"') |
          has_zero(eight ^ kOnes * '\\')) != 0;
}

class Parser {
 public:
  Parser(std::string_view text, JsonHandler& handler, std::string_view what)
      : text_(text), handler_(handler), what_(what) {}

  void run() {
    value();
    while (!open_.empty()) {
      skip_space();
      const bool object = open_.back() == '{';
      if (next_is(object ? '}' : ']')) {
        open_.pop_back();
        object ? handler_.end_object() : handler_.end_array();
        first_ = false;
        continue;
      }
      if (!first_ && !next_is(',')) fail(object ? "',' or '}' expected" : "',' or ']' expected");
      if (object) {
        skip_space();
        if (peek() != '"') fail("a member name expected");
        handler_.key(string());
        skip_space();
        if (!next_is(':')) fail("':' expected");
      }
      value();
    }
    skip_space();
    if (at_ != text_.size()) fail("more text after the end");
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw Error(ErrorCode::corrupt, fmt::format("{} is not valid JSON: {} at byte {}", what_, why, at_));
  }

  // NUL at the end; a NUL in the text is valid nowhere.
  char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool next_is(char c) noexcept {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void skip_space() noexcept {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }

  // Reads a scalar, or opens an object or array.
  void value() {
    skip_space();
    first_ = false;
    switch (peek()) {
      case '{':
        return open('{');
      case '[':
        return open('[');
      case '"':
        return handler_.string(string());
      case 'n':
        return word("null"), handler_.null();
      case 't':
        return word("true"), handler_.boolean(true);
      case 'f':
        return word("false"), handler_.boolean(false);
      default:
        return number();
    }
  }

  void open(char bracket) {
    ++at_;
    open_.push_back(bracket);
    first_ = true;
    bracket == '{' ? handler_.begin_object() : handler_.begin_array();
  }

  void word(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) fail("a value expected");
    at_ += expected.size();
  }

  std::size_t digits() noexcept {
    const std::size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ - begin;
  }

  void number() {
    const std::size_t begin = at_;
    bool integer = !next_is('-');
    const bool zero = peek() == '0';
    const std::size_t whole = digits();
    if (whole == 0) fail("a value expected");
    if (zero && whole > 1) fail("a number with a leading zero");
    if (next_is('.')) {
      integer = false;
      if (digits() == 0) fail("a digit expected");
    }
    if (next_is('e') || next_is('E')) {
      integer = false;
      if (!next_is('+')) next_is('-');
      if (digits() == 0) fail("a digit expected");
    }
    const std::string_view written = text_.substr(begin, at_ - begin);
    std::uint64_t result = 0;
    if (integer &&
        std::from_chars(written.data(), written.data() + written.size(), result).ec == std::errc{}) {
      handler_.unsigned_integer(result);
    } else {
      handler_.other_number(written);
    }
  }

  std::string string() {
    std::string result;
    std::size_t begin = ++at_;  // of what has not been copied yet
    for (;;) {
      for (std::uint64_t eight = 0; text_.size() - at_ >= 8; at_ += 8) {
        std::memcpy(&eight, text_.data() + at_, 8);
        if (has_special(eight)) break;
      }
      if (at_ == text_.size()) fail("a string without end");
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        result.append(text_, begin, at_++ - begin);
        return result;
      }
      if (c < 0x20) fail("a control character in a string");
      if (c == '\\') {
        result.append(text_, begin, at_ - begin);
        while (next_is('\\')) escape(result);
        begin = at_;
        continue;
      }
      const std::size_t length = utf8_sequence_length(text_, at_);
      if (length == 0) fail("invalid UTF-8");
      at_ += length;
    }
  }

  void escape(std::string& result) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
    const char name = peek();
    if (at_ < text_.size()) ++at_;
    if (name == 'u') return append_utf8(result, code_point());
    const auto found = name == '\0' ? std::string_view::npos : kNames.find(name);
    if (found == std::string_view::npos) fail("an unknown escape");
    result += kValues[found];
  }

  std::uint32_t four_digits() {
    if (text_.size() - at_ < 4) fail("four hexadecimal digits expected");
    std::uint32_t unit = 0;
    for (const char* digit = text_.data() + at_; digit != text_.data() + at_ + 4; ++digit) {
      const char lower = static_cast<char>(*digit | 0x20);
      if (*digit >= '0' && *digit <= '9') {
        unit = unit << 4 | static_cast<std::uint32_t>(*digit - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        unit = unit << 4 | static_cast<std::uint32_t>(lower - 'a' + 10);
      } else {
        fail("four hexadecimal digits expected");
      }
    }
    at_ += 4;
    return unit;
  }

  std::uint32_t code_point() {
    const std::uint32_t unit = four_digits();
    if (unit < 0xd800 || unit > 0xdfff) return unit;
    if (unit > 0xdbff || !next_is('\\') || !next_is('u')) fail("half of a surrogate pair");
    const std::uint32_t low = four_digits();
    if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair");
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
  }

  static void append_utf8(std::string& out, std::uint32_t code) {
    const auto add = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code < 0x80) return add(code);
    if (code < 0x800) {
      add(0xc0 | code >> 6);
    } else if (code < 0x10000) {
      add(0xe0 | code >> 12);
      add(0x80 | (code >> 6 & 0x3f));
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3f));
      add(0x80 | (code >> 6 & 0x3f));
    }
    add(0x80 | (code & 0x3f));
  }

  std::string_view text_;
  JsonHandler& handler_;
  std::string_view what_;
  std::size_t at_ = 0;
  std::vector<char> open_;  // '{' and '[' that wait for their end
  bool first_ = false;      // nothing stands in the innermost yet
};

}  // namespace

void parse_json(std::string_view text, JsonHandler& handler, std::string_view what) {
  Parser(text, handler, what).run();
}

std::string json_quote(std::string_view text) {
  if (!is_utf8(text)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} bytes of text for JSON are not valid UTF-8", text.size()));
  }
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace shard
