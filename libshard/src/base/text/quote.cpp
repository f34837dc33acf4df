#include "base/text/quote.hpp"

#include "shard/keys.hpp"

namespace shard {

std::string quoted_key(std::string_view key) {
  std::string text = "\"";
  for (const char c : key) {
    if (c == '"')
      text += "\\x22";  // the end of a quotation stays recognisable
    else
      text += c;
  }
  return text + '"';
}

std::string quoted(std::string_view text) { return quoted_key(escape_key(text)); }

std::string quoted(const std::filesystem::path& path) { return quoted(std::string_view(path.native())); }

std::string quoted_excerpt(std::string_view text) {
  constexpr std::size_t kShownBytes = 100;
  std::string shown = quoted(text.substr(0, kShownBytes));
  if (text.size() > kShownBytes) shown.insert(shown.size() - 1, "...");
  return shown;
}

}  // namespace shard
