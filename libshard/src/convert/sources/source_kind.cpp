#include "convert/sources/source_kind.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "base/text/quote.hpp"
#include "shard/error.hpp"
#include "shard/remote.hpp"

namespace shard::convert {

namespace {

// name, on_servers, about_servers, has_archives, has_side_members, matches, scan. The last row takes all that
// is left; its scan says what is wrong with it.
constexpr SourceKind kSourceKinds[] = {
    {"a list", true, "@FILE with an address per line", false, false, names_list, scan_list},
    {"a tar archive", true, "tar archives (.tar, also a pattern with {000..146})", true, true, names_tars,
     scan_tars},
    {"an array", false, "arrays are read from files only", true, false, names_arrays, scan_arrays},
    {"a folder", false, "folders on servers are not listed", false, false,
     [](const std::string&) { return true; }, scan_folder},
};

// What a message says of the kinds that may be on servers, or of the others.
std::string about_servers(bool on_servers, const char* between) {
  std::vector<std::string_view> texts;
  for (const SourceKind& kind : kSourceKinds)
    if (kind.on_servers == on_servers) texts.emplace_back(kind.about_servers);
  return fmt::format("{}", fmt::join(texts, between));
}

}  // namespace

std::span<const SourceKind> source_kinds() noexcept { return kSourceKinds; }

const SourceKind& source_kind(const std::string& images) {
  const bool remote = is_remote(images);
  for (const SourceKind& kind : kSourceKinds)
    if ((kind.on_servers || !remote) && kind.matches(images)) return kind;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {}: give {}", quoted(images), about_servers(false, ", and "),
                          about_servers(true, ", or ")));
}

std::string names_of_kinds(bool (*some)(const SourceKind& kind)) {
  std::string text;
  std::string_view last;
  for (const SourceKind& kind : kSourceKinds) {
    if (!some(kind)) continue;
    if (!last.empty()) text += fmt::format("{}{}", text.empty() ? "" : ", ", last);
    last = kind.name;
  }
  return text.empty() ? std::string(last) : fmt::format("{} or {}", text, last);
}

}  // namespace shard::convert
