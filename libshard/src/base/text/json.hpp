// JSON as events, and strings to JSON.
//
// This is not nlohmann-json, because headers of up to 100 MB come from unknown sources. This reader does not
// recurse and keeps only the current string. It refuses a hostile header in 0.02 to 0.15 s of CPU time
// (safetensors_test, LargeHeader); nlohmann-json takes 1.2 to 1.7 s, both at -O1.
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
  // Any other number (negative, fraction, exponent, above 2^64 - 1), as it is written.
  virtual void other_number(std::string_view text) = 0;
  virtual void string(std::string&& value) = 0;
  virtual void begin_object() = 0;
  virtual void key(std::string&& name) = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
};

// Feeds `text` (one value of strict RFC 8259, valid UTF-8, no byte order mark) to `handler`. Throws corrupt
// at the first error of grammar, beginning with `what` and naming the byte; what the handler throws passes
// through.
void parse_json(std::string_view text, JsonHandler& handler, std::string_view what);

// `text` as a JSON string with its quotes. Throws invalid_argument when it is not UTF-8.
std::string json_quote(std::string_view text);

}  // namespace shard
