// What answers of servers say, as text. Pure functions of hostile text:
// nothing where it is not what it should be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shard {

// "bytes FIRST-LAST/TOTAL" as a half-open range that lies inside of the total.
struct ContentRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t total = 0;
};
std::optional<ContentRange> parse_content_range(std::string_view text);

// Whether the same request may succeed later: the server, or one before it, is busy or restarts.
constexpr bool may_succeed_later(long status) noexcept {
  return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

// Names of headers are compared in this way.
bool equals_ignoring_case(std::string_view a, std::string_view b);

// "SlowDown" of <Code>SlowDown</Code> in an error of S3; empty if there is none of letters and digits.
std::string error_code_of(std::string_view xml);

}  // namespace shard
