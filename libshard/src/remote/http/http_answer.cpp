#include "remote/http/http_answer.hpp"

#include <algorithm>
#include <system_error>

#include "base/text/number.hpp"
#include "base/text/words.hpp"
#include "base/text/xml.hpp"

namespace shard {

std::optional<ContentRange> parse_content_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t dash = text.find('-');
  const std::size_t slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) return std::nullopt;
  const auto first = number_of<std::uint64_t>(text.substr(0, dash));
  const auto last = number_of<std::uint64_t>(text.substr(dash + 1, slash - dash - 1));
  const auto total = number_of<std::uint64_t>(text.substr(slash + 1));
  if (!first || !last || !total || *last < *first || *last >= *total) return std::nullopt;
  return ContentRange{*first, *last + 1, *total};
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return ascii_lower(x) == ascii_lower(y); });
}

std::string error_code_of(std::string_view xml) {
  const std::string code = xml_text(xml, "Code");
  return code.size() <= 64 && is_word(code, "") ? code : std::string();
}

}  // namespace shard
