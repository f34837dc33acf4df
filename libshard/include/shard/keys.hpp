// Sample keys: relative source paths as UTF-8 without control characters, losslessly.
//
// A byte that is not part of valid UTF-8 (no surrogates, no overlong forms), a control character (U+0000 to
// U+001F, U+007F) and the backslash are written as \xHH with two lower-case hexadecimal digits; every other
// byte stands for itself. No Unicode normalisation takes place: names that differ in bytes have keys that
// differ.
#pragma once

#include <string>
#include <string_view>

namespace shard {

std::string escape_key(std::string_view raw_bytes);
// The inverse; throws invalid_argument when `key` is not what escape_key returns for some input.
std::string unescape_key(std::string_view key);
// RFC 4180: quoted when it holds a comma, quote or line break.
std::string csv_field(std::string_view text);

}  // namespace shard
