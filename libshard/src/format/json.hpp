// JSON as events, and strings to JSON. The one place that knows a JSON library (json.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shard {

// Receives a document's events in order; refuses it by throwing.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  virtual void unsigned_integer(std::uint64_t value) = 0;
  // Any other number (negative, fraction, exponent, above 2^64 - 1); `text` is empty for a negative integer.
  virtual void other_number(std::string_view text) = 0;
  virtual void string(std::string&& value) = 0;
  virtual void begin_object() = 0;
  virtual void key(std::string&& name) = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
};

// Feeds `text` (strict RFC 8259, valid UTF-8) to `handler`. Does not recurse. Throws corrupt at the first
// error of grammar, beginning with `what`; what the handler throws passes through. Memory: a constant factor
// of the longest string.
void parse_json(std::string_view text, JsonHandler& handler, std::string_view what);

// `text` as a JSON string with its quotes. Throws invalid_argument when it is not UTF-8.
std::string json_quote(std::string_view text);

}  // namespace shard
