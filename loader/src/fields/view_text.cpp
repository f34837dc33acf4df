#include "fields/view_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

// Version 1 had no resize, filter and fill.
constexpr std::uint32_t kVersion = 2;

// The last one of each enumeration.
constexpr CropKind last_of(CropKind) { return CropKind::random_resized; }
constexpr DType last_of(DType) { return DType::f64; }
constexpr Layout last_of(Layout) { return Layout::tensor; }
template <class Named>
constexpr Named last_of(Named) {
  return static_cast<Named>(words_of(Named{}).size() - 1);
}

// members(words, of) passes each member of a struct to `words`, which writes or reads it.
template <class Words>
void members(Words& words, Range& of) {
  words(of.low, of.high);
}
template <class Words>
void members(Words& words, Normalization& of) {
  words(of.mean, of.std);
}
template <class Words>
void members(Words& words, TransformOptions& of) {
  if (words.version > 1)
    words(of.resize, of.resize_height, of.resize_width, of.padded, of.patch, of.max_tokens, of.filter,
          of.fill);
  words(of.crop, of.crop_height, of.crop_width, of.scale, of.ratio, of.flip, of.dtype, of.layout,
        of.normalization, of.operations);
}

class Writer {
 public:
  template <class... Members>
  void operator()(Members&... of) {
    (write(of), ...);
  }
  std::string text;
  std::uint32_t version = kVersion;

 private:
  void word(std::string_view one) {
    if (!text.empty()) text += ' ';
    text += one;
  }
  template <class T>
  void write(T& of) {
    if constexpr (std::is_same_v<T, bool>)
      word(of ? "1" : "0");
    else if constexpr (std::is_enum_v<T>)
      word(fmt::format("{}", static_cast<unsigned>(of)));
    else if constexpr (std::is_arithmetic_v<T>)
      word(fmt::format("{}", of));
    else
      members(*this, of);
  }
  template <class T, std::size_t N>
  void write(std::array<T, N>& of) {
    for (T& one : of) write(one);
  }
  template <class T>
  void write(std::optional<T>& of) {
    word(of ? "+" : "-");
    if (of) write(*of);
  }
  template <class T>
  void write(std::vector<T>& of) {
    word(fmt::format("{}", of.size()));
    for (T& one : of) write(one);
  }
  void write(Operation& of) {
    word(name_of(of));
    const auto member = [this](std::string_view, auto& value, const Limits&) { write(value); };
    std::visit([&](auto& operation) { ops::visit_members(operation, member); }, of);
  }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  template <class... Members>
  void operator()(Members&... of) {
    (read(of), ...);
  }
  bool at_end() const noexcept { return rest_.empty(); }
  std::uint32_t version = 0;

  [[noreturn]] static void refuse(std::string_view word, std::string_view expected) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the views of a loader state have the word {} where {} was expected",
                            quoted(std::string(word.substr(0, 40))), expected));
  }

 private:
  std::string_view word() {
    const std::size_t end = rest_.find(' ');
    const std::string_view one = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    return one;
  }
  template <class T>
  T number(std::string_view expected) {
    const std::string_view one = word();
    const auto value = number_of<T>(one);
    if (!value) refuse(one, expected);
    return *value;
  }
  // 0 to `last`.
  unsigned choice(unsigned last) {
    const auto value = number<unsigned>("a whole number");
    if (value > last) refuse(fmt::format("{}", value), fmt::format("0 to {}", last));
    return value;
  }
  template <class T>
  void read(T& of) {
    if constexpr (std::is_same_v<T, bool>)
      of = choice(1) == 1;
    else if constexpr (std::is_enum_v<T>)
      of = static_cast<T>(choice(static_cast<unsigned>(last_of(T{}))));
    else if constexpr (std::is_arithmetic_v<T>)
      of = number<T>("a number");
    else
      members(*this, of);
  }
  template <class T, std::size_t N>
  void read(std::array<T, N>& of) {
    for (T& one : of) read(one);
  }
  template <class T>
  void read(std::optional<T>& of) {
    const std::string_view one = word();
    if (one != "+" && one != "-") refuse(one, "+ or -");
    of.reset();
    if (one == "+") read(of.emplace());
  }
  // Each element has a word, so memory is bounded by the text and not by the number in it.
  template <class T>
  void read(std::vector<T>& of) {
    const auto count = number<std::uint32_t>("a number of elements");
    of.clear();
    for (std::uint32_t i = 0; i < count; ++i) read(of.emplace_back());
  }
  void read(Operation& of) {
    const std::string_view name = word();
    const std::optional<Operation> known = operation_named(name);
    if (!known) refuse(name, "an operation");
    of = *known;
    const auto member = [this](std::string_view, auto& value, const Limits&) { read(value); };
    std::visit([&](auto& operation) { ops::visit_members(operation, member); }, of);
  }

  std::string_view rest_;
};

}  // namespace

std::string views_to_text(const std::vector<TransformOptions>& views) {
  Writer words;
  std::vector<TransformOptions> copies = views;
  // Earlier versions of this library read what they know.
  const bool resized = std::any_of(views.begin(), views.end(), [](const TransformOptions& view) {
    return view.resize != ResizeKind::none || view.filter != ResizeFilter::bilinear || !view.fill.empty() ||
           view.padded != 0 || view.patch != 0;
  });
  words.version = resized ? kVersion : 1;
  words(words.version, copies);
  return std::move(words.text);
}

std::vector<TransformOptions> views_from_text(std::string_view text) {
  Reader words(text);
  words(words.version);
  if (words.version < 1 || words.version > kVersion)
    Reader::refuse(fmt::format("{}", words.version),
                   fmt::format("version 1 to {} (of another version of this library)", kVersion));
  std::vector<TransformOptions> views;
  words(views);
  if (views.empty()) Reader::refuse("0", "at least one view");
  if (!words.at_end()) Reader::refuse("behind the last view", "the end");
  return views;
}

}  // namespace shard
