#include "convert/plan/pair_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "base/text/quote.hpp"
#include "shard/error.hpp"

namespace shard::convert {

namespace {

[[noreturn]] void refuse_pair(std::string_view option, std::string_view value, std::string_view expected) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} {}: expected {}", option, quoted(value), expected));
}

std::uint32_t parse_class(std::string_view option, std::string_view text, std::uint32_t least,
                          std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    refuse_pair(option, text, fmt::format("a number of {} to {}", least, most));
  return value;
}
std::uint32_t parse_classes(std::string_view option, std::string_view text) {
  return parse_class(option, text, 1, 65'536);
}
std::uint32_t parse_ignore(std::string_view option, std::string_view text) {
  return parse_class(option, text, 0, 65'535);
}

// One "key=value" behind a pair. False: it is none, so it belongs to the folder.
bool take_setting(std::string_view setting, FurtherImages& from) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view key = setting.substr(0, equals);
  const std::string_view value = setting.substr(equals + 1);
  if (key == "suffix") {
    from.suffix = value;
  } else if (key == "role") {
    const auto role = field_role_from_string(value);
    if (!role) refuse_pair("`pair` role", value, "image or mask");
    from.role = *role;
  } else if (key == "classes") {
    from.classes = parse_classes("`pair` classes", value);
  } else if (key == "ignore") {
    from.ignore = parse_ignore("`pair` ignore", value);
  } else if (key == "dtype") {
    from.dtype = dtype_from_option(value);
    if (!from.dtype) refuse_pair("`pair` dtype", value, "u8, u16, f16, bf16 or f32");
  } else if (key == "filter") {
    const auto filter = image::filter_from_string(value);
    if (!filter) refuse_pair("`pair` filter", value, "bilinear, bicubic, lanczos, box or nearest");
    from.filter = *filter;
  } else if (key == "codec") {
    from.codec = codec_spec_from_string(std::string(value));
  } else if (key == "size") {
    if (value != "any") refuse_pair("`pair` size", value, "any, or nothing for the size of the image");
    from.any_size = true;
  } else {
    return false;
  }
  return true;
}

FurtherImages parse_pair(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse_pair("`pair`", text, "NAME=DIR, for example depth=scans/depth");
  FurtherImages from;
  from.name = text.substr(0, equals);
  std::string_view rest = std::string_view(text).substr(equals + 1);
  // From the back, so that a folder may have commas in its name.
  for (std::size_t comma = rest.rfind(','); comma != std::string_view::npos; comma = rest.rfind(',')) {
    if (!take_setting(rest.substr(comma + 1), from)) break;
    rest = rest.substr(0, comma);
  }
  from.folder = std::string(rest);
  return from;
}

}  // namespace

std::vector<FurtherImages> parse_pairs(const TextOptions& text) {
  std::vector<FurtherImages> pairs;
  if (!text.mask_dir.empty()) {
    FurtherImages& masks = pairs.emplace_back();
    masks.name = "mask";
    masks.folder = text.mask_dir;
    masks.role = FieldRole::mask;
    masks.suffix = text.mask_suffix;
    if (!text.mask_classes.empty()) masks.classes = parse_classes("`mask_classes`", text.mask_classes);
    if (!text.mask_ignore.empty()) masks.ignore = parse_ignore("`mask_ignore`", text.mask_ignore);
  } else if (!text.mask_classes.empty() || !text.mask_ignore.empty() || !text.mask_suffix.empty()) {
    throw Error(
        ErrorCode::invalid_argument,
        "`mask_suffix`, `mask_classes` and `mask_ignore` are about the masks of `mask_dir`: give that too");
  }
  for (const std::string& pair : text.pairs) pairs.push_back(parse_pair(pair));
  return pairs;
}

}  // namespace shard::convert
