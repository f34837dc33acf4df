// How each option that is written as text sets its member. All throw invalid_argument, naming the option,
// the value and what is expected.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "shard/convert/text_options.hpp"

// A namespace of their own: the names are short.
namespace shard::convert::setters {

// "`NAME` VALUE: EXPECTED"
[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view expected);
std::uint64_t parse_whole(std::string_view name, const std::string& text, std::uint64_t least,
                          std::uint64_t most);
// The place of a word in a list.
std::size_t parse_word(std::string_view name, const std::string& text,
                       std::span<const std::string_view> words);

template <auto Member>
void path(Options& options, std::string_view, const std::string& value) {
  options.*Member = value;
}
template <auto Member>
void on(Options& options, std::string_view name, const std::string& value) {
  options.*Member = parse_word(name, value, std::array<std::string_view, 2>{"false", "true"}) == 1;
}
template <auto Member, std::uint64_t kLeast = 0,
          std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max()>
void number(Options& options, std::string_view name, const std::string& value) {
  using T = std::remove_reference_t<decltype(options.*Member)>;
  options.*Member = static_cast<T>(
      parse_whole(name, value, kLeast, std::min<std::uint64_t>(kMost, std::numeric_limits<T>::max())));
}
template <auto Member>
void word(Options& options, std::string_view name, const std::string& value) {
  using T = std::remove_reference_t<decltype(options.*Member)>;
  options.*Member = static_cast<T>(parse_word(name, value, words_of(T{})));
}

void set_classes(Options& options, std::string_view name, const std::string& value);
void add_column(Options& options, std::string_view name, const std::string& value);
void set_mask(Options& options, std::string_view name, const std::string& value);
void add_pair(Options& options, std::string_view name, const std::string& value);
void set_array_layout(Options& options, std::string_view name, const std::string& value);
void set_preset(Options& options, std::string_view name, const std::string& value);
void set_resize(Options& options, std::string_view name, const std::string& value);
void set_crop(Options& options, std::string_view name, const std::string& value);
void set_squash(Options& options, std::string_view name, const std::string& value);
void set_size(Options& options, std::string_view name, const std::string& value);
void set_longest(Options& options, std::string_view name, const std::string& value);
void set_shortest(Options& options, std::string_view name, const std::string& value);
void set_area(Options& options, std::string_view name, const std::string& value);
void set_multiple(Options& options, std::string_view name, const std::string& value);
void set_filter(Options& options, std::string_view name, const std::string& value);
void set_dtype(Options& options, std::string_view name, const std::string& value);
void set_channels(Options& options, std::string_view name, const std::string& value);
void set_layout(Options& options, std::string_view name, const std::string& value);
void set_normalize(Options& options, std::string_view name, const std::string& value);
void set_mean(Options& options, std::string_view name, const std::string& value);
void set_std(Options& options, std::string_view name, const std::string& value);
void set_codec(Options& options, std::string_view name, const std::string& value);
void set_quality(Options& options, std::string_view name, const std::string& value);
void set_shard_bytes(Options& options, std::string_view name, const std::string& value);

}  // namespace shard::convert::setters
