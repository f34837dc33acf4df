#include "convert/plan/choose.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text/quote.hpp"
#include "convert/sources/input_file.hpp"
#include "shard/error.hpp"
#include "shard/image/wide.hpp"
#include "shard/keys.hpp"

namespace shard::convert {

namespace {

constexpr std::size_t kMostLookedAt = 1000;  // inputs, if the first ones cannot be read

bool is_recoverable(const Error& error) { return error.code() != ErrorCode::cancelled; }

std::optional<image::WideInfo> info_of(InputReader& reader, const Input& input, std::uint64_t max_pixels) {
  try {
    return image::read_wide_info(reader.read(input), max_pixels, input.page_number());
  } catch (const Error& error) {
    if (!is_recoverable(error)) throw;
    return std::nullopt;
  }
}

// Of a TIFF file. Empty: of other files, and where they cannot be counted.
std::vector<std::uint32_t> pages_of(InputReader& reader, const Input& input) {
  std::span<const std::byte> file;
  try {
    file = reader.read(input);
  } catch (const UnreadableInput&) {
    return {};
  }
  if (image::detect_format(file) != image::Format::tiff) return {};
  try {
    return image::image_pages(file);
  } catch (const Error&) {
    return {};
  }
}

bool rgb_holds(const image::WideInfo& info, bool array) {
  if (info.dtype != DType::u8 && (array || info.dtype != DType::u16)) return false;
  return info.channels <= 4 && !(array && info.channels == 2);
}

}  // namespace

void expand_pages(const Options& options, InputList& list) {
  if (!options.pages) return;
  InputReader reader(list);
  std::vector<Input> inputs;
  for (const Input& input : list.inputs) {
    const std::vector<std::uint32_t> pages = pages_of(reader, input);
    if (pages.empty()) inputs.push_back(input);
    for (const std::uint32_t page : pages) {
      inputs.push_back(input);
      inputs.back().page = page;
    }
  }
  list.inputs = std::move(inputs);
  for (const Input& input : list.inputs) {
    const PageName name = page_name(input.path);
    if (name.page != Input::kNoPage && find_input(list, name.path, name.page) != nullptr)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("the file {} has the key of page {} of {} (`pages`): rename one of them",
                      quoted_key(escape_key(input.path)), name.page, quoted_key(escape_key(name.path))));
  }
}

void require_counted(std::span<const std::byte> file) {
  if (image::detect_format(file) != image::Format::tiff) return;
  static_cast<void>(image::image_pages(file));
  throw InputChanged(
      ErrorCode::invalid_argument,
      "the pages of a TIFF file could not be counted when this run started, and can be now: inputs must not "
      "change while they are converted; run the same command again");
}

void require_rgb_array(std::span<const std::byte> file, std::uint64_t max_pixels) {
  const image::WideInfo info = image::read_wide_info(file, max_pixels);
  if (!rgb_holds(info, true))
    throw Error(
        ErrorCode::unsupported,
        fmt::format("is an array of {} with {} channels, but the samples are RGB of 8 bits (as the first "
                    "one): give `channels` and `dtype`, or convert it apart",
                    to_string(info.dtype), info.channels));
}

image::PreprocessOptions choose_preprocess(const Options& options, const InputList& list) {
  image::PreprocessOptions chosen = options.preprocess;
  const bool array = list.of_arrays();
  const bool asked = chosen.wide() || options.keep_channels;
  InputReader reader(list);
  std::optional<image::WideInfo> first;
  std::string key;
  for (std::size_t i = 0; i < std::min(list.inputs.size(), asked ? kMostLookedAt : 1) && !first; ++i) {
    first = info_of(reader, list.inputs[i], options.max_pixels);
    key = list.inputs[i].key();
  }
  if (!first && asked && chosen.channels == 0)
    throw Error(
        ErrorCode::invalid_argument,
        "none of the first images can be read, so the number of channels is not known: give `channels`");
  if (!asked && (!first || rgb_holds(*first, array))) return chosen;
  if (options.depth != 0)  // check() has seen what was asked for
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("`depth`: the first image, {}, is kept as it is, because RGB of 8 bits cannot hold it",
                    quoted_key(key)));
  if (chosen.channels == 0) chosen.channels = first->channels;
  if (first && options.keep_dtype) chosen.dtype = first->dtype;
  if (options.keep_normalization && (chosen.channels != 3 || (first && is_floating(first->dtype))))
    chosen.normalization = {};
  chosen.normalization = for_channels(chosen.normalization, chosen.channels);
  try {
    chosen.check();
  } catch (const Error& error) {
    throw Error(error.code(), key.empty() ? error.what()
                                          : fmt::format("{} (the channels are those of the first image, {})",
                                                        error.what(), quoted_key(key)));
  }
  return chosen;
}

}  // namespace shard::convert
