// Shows foreign names and text in messages: printable, in double quotes.
//
// Bytes that could break the line or the terminal are escaped as in sample keys (shard/keys.hpp). All
// messages of the libraries and programs use these functions and nothing else.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace shard {

// "PATH", in full.
std::string quoted(const std::filesystem::path& path);
// "TEXT", in full: names, values of options.
std::string quoted(std::string_view text);
inline std::string quoted(const std::string& text) { return quoted(std::string_view(text)); }
inline std::string quoted(std::string& text) {
  return quoted(std::string_view(text));
}  // rather than std::quoted
inline std::string quoted(const char* text) { return quoted(std::string_view(text)); }
// "KEY": the key of a sample, which is escaped already.
std::string quoted_key(std::string_view key);
// "TEXT..." of text from a file: at most its first 100 bytes.
std::string quoted_excerpt(std::string_view text);

}  // namespace shard
