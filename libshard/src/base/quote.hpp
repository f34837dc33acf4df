// Text from a file, for a message: printable, in quotes, of bounded length.
#pragma once

#include <string>
#include <string_view>

#include "shard/keys.hpp"

namespace shard {

inline std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShownBytes = 100;
  return '"' + escape_key(text.substr(0, kShownBytes)) + (text.size() > kShownBytes ? "...\"" : "\"");
}

}  // namespace shard
