#include "convert/plan/pair_options.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/text/number.hpp"
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
  const auto value = number_of<std::uint32_t>(text);
  if (!value || *value < least || *value > most)
    refuse_pair(option, text, fmt::format("a number of {} to {}", least, most));
  return *value;
}
std::uint32_t parse_classes(std::string_view option, std::string_view text) {
  return parse_class(option, text, 1, 65'536);
}
std::uint32_t parse_ignore(std::string_view option, std::string_view text) {
  return parse_class(option, text, 0, 65'535);
}

// One "key=value" behind a pair. False: it is none, so it belongs to the folder.
bool take_setting(std::string_view option, std::string_view setting, FurtherImages& from) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view key = setting.substr(0, equals);
  const std::string_view value = setting.substr(equals + 1);
  const auto setting_of = [&](const char* word) { return fmt::format("`{}` {}", option, word); };
  if (key == "suffix") {
    from.suffix = value;
  } else if (key == "role") {
    const auto role = field_role_from_string(value);
    if (!role) refuse_pair(setting_of("role"), value, "image or mask");
    from.role = *role;
  } else if (key == "classes") {
    from.classes = parse_classes(setting_of("classes"), value);
  } else if (key == "ignore") {
    from.ignore = parse_ignore(setting_of("ignore"), value);
  } else if (key == "dtype") {
    from.dtype = dtype_from_option(value);
    if (!from.dtype) refuse_pair(setting_of("dtype"), value, "u8, u16, f16, bf16 or f32");
  } else if (key == "filter") {
    const auto filter = image::filter_from_string(value);
    if (!filter) refuse_pair(setting_of("filter"), value, "bilinear, bicubic, lanczos, box or nearest");
    from.filter = *filter;
  } else if (key == "codec") {
    from.codec = codec_spec_from_string(std::string(value));
  } else if (key == "size") {
    if (value != "any") refuse_pair(setting_of("size"), value, "any, or nothing for the size of the image");
    from.any_size = true;
  } else {
    return false;
  }
  return true;
}

// A folder may have ",word=" in its name. Then it is there.
void refuse_unknown_setting(std::string_view option, std::string_view folder) {
  const std::size_t comma = folder.rfind(',');
  const std::size_t equals = comma == std::string_view::npos ? comma : folder.find('=', comma);
  std::error_code error;
  if (equals == std::string_view::npos || std::filesystem::exists(folder, error)) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format(
          "`{}` {}: there is no setting {}, and no folder of this name; the settings are suffix, role, "
          "classes, ignore, dtype, filter, codec and size",
          option, quoted(folder), quoted(folder.substr(comma + 1, equals - comma - 1))));
}

}  // namespace

FurtherImages parse_pair(std::string_view option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse_pair(fmt::format("`{}`", option), text, "NAME=DIR, for example depth=scans/depth");
  FurtherImages from;
  from.name = text.substr(0, equals);
  std::string_view rest = std::string_view(text).substr(equals + 1);
  // From the back, so that a folder may have commas in its name.
  for (std::size_t comma = rest.rfind(','); comma != std::string_view::npos; comma = rest.rfind(',')) {
    if (!take_setting(option, rest.substr(comma + 1), from)) break;
    rest = rest.substr(0, comma);
  }
  refuse_unknown_setting(option, rest);
  from.folder = std::string(rest);
  return from;
}

}  // namespace shard::convert
