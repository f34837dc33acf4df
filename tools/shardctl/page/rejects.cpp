#include "shardctl/page/rejects.hpp"

#include <algorithm>
#include <map>

#include "shard/convert/tables.hpp"
#include "shard/keys.hpp"

namespace shard::ctl {
namespace {

constexpr std::size_t kMostTextBytes = 500;  // of a path or reason on the page
constexpr const char* kOtherReasons = "other reasons";

bool is_hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// A word of digits, or of two hexadecimal ones, as in "begins with 4d 5a".
bool is_number(const std::string& word) {
  const auto decimal = [](char c) { return c >= '0' && c <= '9'; };
  if (word.empty()) return false;
  return std::all_of(word.begin(), word.end(), decimal) ||
         (word.size() == 2 && std::all_of(word.begin(), word.end(), is_hex_digit));
}

// Escapes what is no plain text, as keys are. Whatever was cut is marked.
std::string shown_text(const std::string& text) {
  std::string shown;
  try {
    shown = escape_key(unescape_key(text));
  } catch (const Error&) {
    shown = escape_key(text);
  }
  if (shown.size() <= kMostTextBytes) return shown;
  std::size_t end = kMostTextBytes;
  while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0U) == 0x80U) --end;  // between characters
  return shown.substr(0, end) + "...";
}

}  // namespace

std::string reason_kind(const std::string& reason) {
  std::string kind;
  std::string word;
  bool quoted = false;
  const auto end_word = [&] {
    const std::string mark = is_number(word) ? "#" : word;
    if (!(mark == "#" && kind.ends_with("# ")))
      kind += mark;  // several numbers are one mark
    else
      kind.pop_back();
    word.clear();
  };
  for (const char c : reason) {
    const bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c == '"') {
      end_word();
      if (!quoted) kind += "\"\"";
      quoted = !quoted;
    } else if (!quoted && letter) {
      word += c;
    } else if (!quoted) {
      end_word();
      kind += c;
    }
  }
  end_word();
  return kind;
}

Rejects read_rejects(const std::filesystem::path& file) {
  Rejects rejects;
  std::map<std::string, std::size_t> by_kind;
  rejects.readable = convert::read_rejects(file, [&](const convert::Reject& reject) {
    std::string kind = reason_kind(reject.reason);
    auto found = by_kind.find(kind);
    const bool last = found == by_kind.end() && rejects.groups.size() + 1 >= kMostReasons;
    if (last) found = by_kind.find(kind = kOtherReasons);
    if (found == by_kind.end()) {
      found = by_kind.emplace(kind, rejects.groups.size()).first;
      rejects.groups.push_back({last ? kOtherReasons : shown_text(reject.reason), 0, {}});
    }
    RejectGroup& group = rejects.groups[found->second];
    ++group.count;
    ++rejects.total;
    if (group.examples.size() < kRejectExamples)
      group.examples.emplace_back(shown_text(reject.key), shown_text(reject.reason));
  });
  std::stable_sort(rejects.groups.begin(), rejects.groups.end(),
                   [](const RejectGroup& a, const RejectGroup& b) { return a.count > b.count; });
  return rejects;
}

}  // namespace shard::ctl
