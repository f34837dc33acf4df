// Patterns of names: "train-{000..146}.tar", "{a,b}.npy".
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "convert/sources/scan.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

constexpr std::uint64_t kMaxNames = 1'000'000;
constexpr std::uint64_t kMaxNamesBytes = std::uint64_t{1} << 30U;  // of all of them

// What stands between braces: "a,b,c", or numbers from "000..146".
// None: it is neither, and the braces are part of the name.
struct Alternatives {
  std::vector<std::string_view> words;
  std::uint64_t from = 0;
  std::uint64_t width = 0;
  std::uint64_t count = 0;

  std::string text(std::uint64_t i) const {
    return words.empty() ? fmt::format("{:0{}}", from + i, width) : std::string(words[i]);
  }
};

Alternatives alternatives(std::string_view inside) {
  Alternatives found;
  const std::size_t dots = inside.find("..");
  if (dots == std::string_view::npos) {
    if (inside.find(',') == std::string_view::npos) return found;
    for (std::size_t begin = 0; begin <= inside.size();) {
      const std::size_t end = std::min(inside.find(',', begin), inside.size());
      found.words.push_back(inside.substr(begin, end - begin));
      begin = end + 1;
    }
    found.count = found.words.size();
    return found;
  }
  const std::string_view first = inside.substr(0, dots);
  const std::string_view last = inside.substr(dots + 2);
  const auto from = number_of<std::uint64_t>(first);
  const auto to = number_of<std::uint64_t>(last);
  if (!from || !to || *from > *to) return {};
  found.from = *from;
  if (*to - *from >= kMaxNames)
    throw Error(ErrorCode::invalid_argument, fmt::format("{{{}}} names {} archives; at most {} are taken",
                                                         inside, *to - *from + 1, kMaxNames));
  found.width = first.size() > 1 && first.front() == '0' ? first.size() : 0;
  found.count = *to - *from + 1;
  return found;
}

// Braces, and the text in front of them.
struct Braces {
  std::string_view before;
  Alternatives inside;
};

}  // namespace

std::vector<std::string> expanded_pattern(const std::string& pattern) {
  std::vector<Braces> all;
  std::string_view rest = pattern;
  std::uint64_t count = 1;
  for (std::size_t open = rest.find('{'); open != std::string_view::npos;) {
    const std::size_t close = rest.find('}', open);
    if (close == std::string_view::npos) break;
    Alternatives inside = alternatives(rest.substr(open + 1, close - open - 1));
    if (inside.count == 0) {
      open = rest.find('{', open + 1);
      continue;
    }
    // Looked at before anything is made of it.
    if (inside.count > kMaxNames / count || inside.count * count > kMaxNamesBytes / pattern.size())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} names {}{} archives; at most {} are taken, and {} bytes of names",
                              quoted_excerpt(pattern), inside.count > kMaxNames / count ? "more than " : "",
                              std::min(inside.count * count, kMaxNames), kMaxNames, kMaxNamesBytes));
    count *= inside.count;
    all.push_back({rest.substr(0, open), std::move(inside)});
    rest.remove_prefix(close + 1);
    open = rest.find('{');
  }
  std::vector<std::string> names;
  names.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name;
    std::uint64_t step = count;
    for (const Braces& braces : all) {
      step /= braces.inside.count;
      name += braces.before;
      name += braces.inside.text(i / step % braces.inside.count);
    }
    names.push_back(name.append(rest));
  }
  return names;
}

}  // namespace shard::convert
