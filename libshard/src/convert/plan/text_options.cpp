#include "convert/plan/text_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text/quote.hpp"
#include "convert/plan/pair_options.hpp"
#include "shard/convert/class_names.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

const Normalization kClip{{0.48145466F, 0.4578275F, 0.40821073F}, {0.26862954F, 0.26130258F, 0.27577711F}};
const Normalization kHalf{{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}};

[[noreturn]] void refuse(const char* option, const std::string& value, const std::string& expected) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} {}: {}", option, quoted(value), expected));
}

std::uint32_t parse_side(const char* option, const std::string& text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || last != end || value < 1 || value > 65535)
    refuse(option, text, "expected a size of 1 to 65535");
  return value;
}

image::Size parse_extent(const char* option, const std::string& text) {
  const auto x = text.find('x');
  if (x == std::string::npos) refuse(option, text, "expected WIDTHxHEIGHT");
  return {parse_side(option, text.substr(0, x)), parse_side(option, text.substr(x + 1))};
}

std::vector<float> parse_channels(const char* option, const std::string& text) {
  std::vector<float> values;
  const char* at = text.data();
  const char* end = text.data() + text.size();
  for (;;) {
    float value = 0;
    auto [last, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || (last != end && *last != ',') || values.size() == kMaxSampleChannels)
      refuse(option, text, "expected a number for each channel: RED,GREEN,BLUE");
    values.push_back(value);
    if (last == end) return values;
    at = last + 1;
  }
}

Normalization parse_normalize(const std::string& text) {
  if (text == "imagenet") return kImagenet;
  if (text == "clip") return kClip;
  if (text == "half") return kHalf;
  if (text == "none") return {};
  refuse("`normalize`", text, "expected imagenet, clip, half or none");
}

void apply_preset(const std::string& preset, image::PreprocessOptions& p) {
  p.normalization = kImagenet;
  if (preset == "eval") return;  // PreprocessOptions' defaults
  if (preset != "train") refuse("`preset`", preset, "expected eval or train");
  p.resize_short = 256;
  p.crop = image::Size{256, 256};
  p.dtype = DType::u8;
  p.layout = Layout::nhwc;
}

template <class T, class Parse>
void set_if_given(T& target, const char* option, const std::string& text, Parse parse, const char* expected) {
  if (text.empty()) return;
  auto value = parse(text);
  if (!value) refuse(option, text, expected);
  target = *value;
}

// Calls a parser that does not know which option it parses, and puts the option's name before its message.
template <class Parse>
auto named(const char* option, Parse parse) {
  try {
    return parse();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", option, error.what()));
  }
}

[[noreturn]] void refuse_column(const std::string& text) {
  refuse("`column`", text,
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
    std::uint64_t axis = 0;
    const auto [end, error] = std::from_chars(axes.data(), axes.data() + axes.size(), axis);
    if (error != std::errc{} || axis == 0) refuse_column(text);
    column.row_shape.push_back(axis);
    axes.remove_prefix(static_cast<std::size_t>(end - axes.data()));
    if (axes.empty()) break;
    if (axes.front() != ',' || axes.size() == 1) refuse_column(text);
    axes.remove_prefix(1);
  }
  return column;
}

}  // namespace

void apply(const TextOptions& text, Options& options) {
  image::PreprocessOptions& p = options.preprocess;
  apply_preset(text.preset, p);
  if (!text.resize.empty()) p.resize_short = parse_side("`resize`", text.resize);
  if (!text.squash.empty()) {
    if (!text.resize.empty())
      throw Error(ErrorCode::invalid_argument,
                  "`squash` and `resize` exclude each other: squash sets both sides");
    p.squash = parse_extent("`squash`", text.squash);
    p.crop.reset();
  }
  if (text.crop == "none") {
    p.crop.reset();
  } else if (!text.crop.empty()) {
    const bool both = text.crop.find('x') != std::string::npos;
    const std::uint32_t side = both ? 0 : parse_side("`crop`", text.crop);
    p.crop = both ? parse_extent("`crop`", text.crop) : image::Size{side, side};
  }
  set_if_given(p.filter, "`filter`", text.filter, image::filter_from_string,
               "expected bilinear, bicubic, lanczos, box or nearest");
  set_if_given(p.dtype, "`dtype`", text.dtype, dtype_from_option, "expected u8, u16, f16, bf16 or f32");
  if (p.dtype != DType::u8 && p.dtype != DType::u16 && p.dtype != DType::f16 && p.dtype != DType::bf16 &&
      p.dtype != DType::f32)
    refuse("`dtype`", text.dtype, "expected u8, u16, f16, bf16 or f32");
  options.keep_dtype = text.dtype.empty();
  if (text.channels == "keep") {
    options.keep_channels = true;
  } else if (!text.channels.empty()) {
    const auto [end, error] =
        std::from_chars(text.channels.data(), text.channels.data() + text.channels.size(), p.channels);
    if (error != std::errc{} || end != text.channels.data() + text.channels.size() || p.channels < 1 ||
        p.channels > kMaxSampleChannels)
      refuse("`channels`", text.channels, "expected keep, or a number of 1 to 4096");
  }
  set_if_given(p.layout, "`layout`", text.layout, layout_from_string, "expected nchw or nhwc");
  if (p.layout == Layout::tensor) refuse("`layout`", text.layout, "expected nchw or nhwc");
  if (!text.normalize.empty()) p.normalization = parse_normalize(text.normalize);
  if (!text.mean.empty()) p.normalization.mean = parse_channels("`mean`", text.mean);
  if (!text.std.empty()) p.normalization.std = parse_channels("`std`", text.std);
  options.keep_normalization = text.normalize.empty() && text.mean.empty() && text.std.empty();
  if (p.normalization.mean.size() != p.normalization.std.size())  // one of them is that of a preset
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`mean` has {} numbers and `std` {}: give both, with a number for each channel",
                            p.normalization.mean.size(), p.normalization.std.size()));
  // A number for each channel says how many there are.
  if (p.channels == 0 && p.normalization.mean.size() != 3)
    p.channels = static_cast<std::uint32_t>(p.normalization.mean.size());
  if (p.channels != 0) p.normalization = for_channels(p.normalization, p.channels);
  if (!text.codec.empty())
    options.codec = named("`codec`", [&] { return codec_spec_from_string(text.codec); });
  if (text.on_error != "skip" && text.on_error != "fail")
    refuse("`on_error`", text.on_error, "expected skip or fail");
  if (text.unlisted != "skip" && text.unlisted != "reject")
    refuse("`unlisted`", text.unlisted, "expected skip or reject");
  if (text.missing != "empty" && text.missing != "skip" && text.missing != "fail")
    refuse("`missing`", text.missing, "expected empty, skip or fail");
  options.missing = text.missing == "empty"  ? Missing::empty
                    : text.missing == "skip" ? Missing::skip
                                             : Missing::fail;
  if (text.array_layout == "nhwc")
    options.array_layout = ArrayLayout::nhwc;
  else if (text.array_layout == "nchw")
    options.array_layout = ArrayLayout::nchw;
  else if (!text.array_layout.empty())
    refuse("`array_layout`", text.array_layout, "expected nhwc or nchw");
  for (const std::string& column : text.columns) options.columns.push_back(parse_column(column));
  if (!text.classes.empty())
    options.classes = named("`classes`", [&] { return read_class_names(text.classes); });
  options.pairs = parse_pairs(text);
  options.unlisted = text.unlisted == "skip" ? Unlisted::skip : Unlisted::reject;
  options.on_error = text.on_error == "fail" ? OnError::fail : OnError::skip;
  set_if_given(options.on_warning, "`on_warning`", text.on_warning, image::on_warning_from_string,
               "expected harmless, accept or reject");
}

}  // namespace shard::convert
