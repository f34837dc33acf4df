// Sample keys: relative source paths as UTF-8 without control characters, without loss.
//
// Some bytes are written as \xHH with two lower-case hexadecimal digits: bytes that are not part of valid
// UTF-8 (no surrogates, no overlong forms), control characters (U+0000 to U+001F, U+007F) and the backslash.
// All other bytes stay as they are. There is no Unicode normalisation: names with different bytes have
// different keys.
#pragma once

#include <string>
#include <string_view>

#include "shard/error.hpp"

namespace shard {

std::string escape_key(std::string_view raw_bytes);
// The inverse. Throws invalid_argument if escape_key() cannot return `key`.
std::string unescape_key(std::string_view key);
// RFC 4180: quoted if it contains a comma, quote or line break.
std::string csv_field(std::string_view text);

}  // namespace shard
