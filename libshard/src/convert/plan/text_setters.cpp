#include "convert/plan/text_setters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "base/text/size.hpp"
#include "convert/plan/pair_options.hpp"
#include "shard/convert/class_names.hpp"

namespace shard::convert::setters {

namespace {

const Normalization kClip{{0.48145466F, 0.4578275F, 0.40821073F}, {0.26862954F, 0.26130258F, 0.27577711F}};
const Normalization kHalf{{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}};

std::uint32_t parse_side(std::string_view name, const std::string& text) {
  const auto value = number_of<std::uint32_t>(text);
  if (!value || *value < 1 || *value > 65535) refuse(name, text, "expected a size of 1 to 65535");
  return *value;
}

image::Size parse_extent(std::string_view name, const std::string& text) {
  const auto x = text.find('x');
  if (x == std::string::npos) refuse(name, text, "expected WIDTHxHEIGHT");
  return {parse_side(name, text.substr(0, x)), parse_side(name, text.substr(x + 1))};
}

// Pixels of an image: "1M" (1,000,000), "262144" or "512x512".
std::uint64_t parse_area(std::string_view name, const std::string& text) {
  if (text.find('x') != std::string::npos) {
    const image::Size size = parse_extent(name, text);
    return std::uint64_t{size.width} * size.height;
  }
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(last, static_cast<std::size_t>(end - last));
  const std::uint64_t scale = unit.empty()                 ? 1
                              : unit == "k" || unit == "K" ? 1000
                              : unit == "M"                ? 1'000'000
                                                           : 0;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32U;
  if (error != std::errc{} || scale == 0 || value < 1 || value > kMost / scale)
    refuse(name, text, "expected a number of pixels up to 4294967296, such as 1M, 262144 or 512x512");
  return value * scale;
}

image::FreeSize& free_size_of(Options& options) {
  std::optional<image::FreeSize>& free = options.preprocess.free_size;
  return free ? *free : free.emplace();
}

void bound_sizes(Options& options, image::FreeSize::Bound bound, std::uint64_t most) {
  free_size_of(options).bound = bound;
  free_size_of(options).most = most;
}

std::vector<float> parse_channels(std::string_view name, const std::string& text) {
  std::vector<float> values;
  for (std::string_view rest = text;; rest.remove_prefix(1)) {
    const auto value = take_number<float>(rest);
    if (!value || !(rest.empty() || rest.front() == ',') || values.size() == kMaxSampleChannels)
      refuse(name, text, "expected a number for each channel: RED,GREEN,BLUE");
    values.push_back(*value);
    if (rest.empty()) return values;
  }
}

template <class T>
T known(std::string_view name, const std::string& text, const std::optional<T>& value, const char* expected) {
  if (!value) refuse(name, text, expected);
  return *value;
}

// Calls a parser that does not know which option it parses, and puts the option's name before its message.
template <class Parse>
auto named(std::string_view name, Parse parse) {
  try {
    return parse();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("`{}`: {}", name, error.what()));
  }
}

[[noreturn]] void refuse_column(const std::string& text) {
  refuse("columns", text,
         "expected NAME:TYPE, with a type such as text, f32, f32[3] (three numbers), i64[] (any number of "
         "numbers) or "
         "f32[,4] (any number of rows of four)");
}

ColumnSpec parse_column(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) refuse_column(text);
  ColumnSpec column{text.substr(0, colon), DType::u8, {}};
  const std::string type = text.substr(colon + 1);
  if (type == "text") {
    column.kind = ColumnKind::text;
    return column;
  }
  const std::size_t bracket = type.find('[');
  const auto dtype = dtype_from_option(std::string_view(type).substr(0, bracket));
  if (!dtype) refuse_column(text);
  column.dtype = *dtype;
  if (bracket == std::string::npos) return column;
  if (type.back() != ']') refuse_column(text);
  std::string_view axes(type);
  axes = axes.substr(bracket + 1, axes.size() - bracket - 2);
  if (axes.empty() || axes.starts_with(',')) {
    if (axes == ",") refuse_column(text);
    column.kind = ColumnKind::ragged;
    axes.remove_prefix(std::min<std::size_t>(1, axes.size()));
  }
  while (!axes.empty()) {
    const auto axis = take_number<std::uint64_t>(axes);
    if (axis.value_or(0) == 0) refuse_column(text);
    column.row_shape.push_back(*axis);
    if (axes.empty()) break;
    if (axes.front() != ',' || axes.size() == 1) refuse_column(text);
    axes.remove_prefix(1);
  }
  return column;
}

}  // namespace

void refuse(std::string_view name, std::string_view value, std::string_view expected) {
  throw Error(ErrorCode::invalid_argument, fmt::format("`{}` {}: {}", name, quoted(value), expected));
}

std::uint64_t parse_whole(std::string_view name, const std::string& text, std::uint64_t least,
                          std::uint64_t most) {
  const auto value = number_of<std::uint64_t>(text);
  if (!value || *value < least || *value > most)
    refuse(name, text, fmt::format("expected a whole number of {} to {}", least, most));
  return *value;
}

std::size_t parse_word(std::string_view name, const std::string& text,
                       std::span<const std::string_view> words) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string expected = "expected ";
  for (std::size_t i = 0; i < words.size(); ++i)
    expected.append(i == 0 ? "" : i + 1 < words.size() ? ", " : " or ").append(words[i]);
  refuse(name, text, expected);
}

void set_classes(Options& options, std::string_view name, const std::string& value) {
  options.classes = named(name, [&] { return read_class_names(value); });
}
void add_column(Options& options, std::string_view, const std::string& value) {
  options.columns.push_back(parse_column(value));
}
void set_mask(Options& options, std::string_view, const std::string& value) {
  FurtherImages& mask = options.pairs.emplace_back(parse_pair("mask", "mask=" + value));
  mask.role = FieldRole::mask;
}
void add_pair(Options& options, std::string_view, const std::string& value) {
  options.pairs.push_back(parse_pair("pairs", value));
}
void set_array_layout(Options& options, std::string_view name, const std::string& value) {
  constexpr auto kWords = words_of(ArrayLayout{});
  options.array_layout = static_cast<ArrayLayout>(parse_word(name, value, std::span(kWords).subspan(1)) + 1);
}

void set_preset(Options& options, std::string_view name, const std::string& value) {
  options.preprocess = preprocess_of(static_cast<Preset>(parse_word(name, value, words_of(Preset{}))));
}
void set_resize(Options& options, std::string_view name, const std::string& value) {
  options.preprocess.resize_short = parse_side(name, value);
}
void set_crop(Options& options, std::string_view name, const std::string& value) {
  if (value == "none") {
    options.preprocess.crop.reset();
  } else if (value.find('x') != std::string::npos) {
    options.preprocess.crop = parse_extent(name, value);
  } else {
    const std::uint32_t side = parse_side(name, value);
    options.preprocess.crop = image::Size{side, side};
  }
}
void set_squash(Options& options, std::string_view name, const std::string& value) {
  options.preprocess.squash = parse_extent(name, value);
}
void set_size(Options& options, std::string_view name, const std::string& value) {
  image::PreprocessOptions& p = options.preprocess;
  if (value == "original") {
    free_size_of(options);
    return;
  }
  if (value.empty() || value.find_first_not_of("0123456789") != std::string::npos)
    refuse(name, value, "expected original, or a size of 1 to 65535");
  p.resize_short = parse_side(name, value);
  p.crop = image::Size{p.resize_short, p.resize_short};
}
void set_longest(Options& options, std::string_view name, const std::string& value) {
  bound_sizes(options, image::FreeSize::Bound::longest, parse_side(name, value));
}
void set_shortest(Options& options, std::string_view name, const std::string& value) {
  bound_sizes(options, image::FreeSize::Bound::shortest, parse_side(name, value));
}
void set_area(Options& options, std::string_view name, const std::string& value) {
  bound_sizes(options, image::FreeSize::Bound::area, parse_area(name, value));
}
void set_multiple(Options& options, std::string_view name, const std::string& value) {
  free_size_of(options).multiple = static_cast<std::uint32_t>(parse_whole(name, value, 1, 4096));
}
void set_filter(Options& options, std::string_view name, const std::string& value) {
  options.preprocess.filter = known(name, value, image::filter_from_string(value),
                                    "expected bilinear, bicubic, lanczos, box or nearest");
}

void set_dtype(Options& options, std::string_view name, const std::string& value) {
  constexpr const char* kExpected = "expected u8, u16, f16, bf16 or f32";
  const DType dtype = known(name, value, dtype_from_option(value), kExpected);
  if (dtype != DType::u8 && dtype != DType::u16 && dtype != DType::f16 && dtype != DType::bf16 &&
      dtype != DType::f32)
    refuse(name, value, kExpected);
  options.preprocess.dtype = dtype;
}
void set_channels(Options& options, std::string_view name, const std::string& value) {
  options.keep_channels = value == "keep";
  if (options.keep_channels) return;
  const auto channels = number_of<std::uint32_t>(value);
  if (!channels || *channels < 1 || *channels > kMaxSampleChannels)
    refuse(name, value, "expected keep, or a number of 1 to 4096");
  options.preprocess.channels = *channels;
}
void set_layout(Options& options, std::string_view name, const std::string& value) {
  const Layout layout = known(name, value, layout_from_string(value), "expected nchw or nhwc");
  if (layout == Layout::tensor) refuse(name, value, "expected nchw or nhwc");
  options.preprocess.layout = layout;
}
void set_normalize(Options& options, std::string_view name, const std::string& value) {
  const std::array known_ones{kImagenet, kClip, kHalf, Normalization{}};
  constexpr std::array<std::string_view, 4> kWords{"imagenet", "clip", "half", "none"};
  options.preprocess.normalization = known_ones[parse_word(name, value, kWords)];
}
void set_mean(Options& options, std::string_view name, const std::string& value) {
  options.preprocess.normalization.mean = parse_channels(name, value);
}
void set_std(Options& options, std::string_view name, const std::string& value) {
  options.preprocess.normalization.std = parse_channels(name, value);
}
void set_codec(Options& options, std::string_view name, const std::string& value) {
  options.codec = named(name, [&] { return codec_spec_from_string(value); });
}
void set_quality(Options& options, std::string_view name, const std::string& value) {
  options.codec.level = static_cast<int>(parse_whole(name, value, 1, 100));
}
void set_shard_bytes(Options& options, std::string_view name, const std::string& value) {
  options.shard_bytes = named(name, [&] { return parse_size(value); });
}

}  // namespace shard::convert::setters
