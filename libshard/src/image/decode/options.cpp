// What the options of preprocessing mean: names, bounds, sizes.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "format/shard/normalization_check.hpp"
#include "shard/error.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::image {
namespace {

constexpr std::uint32_t kMaxSide = 65535;
constexpr std::array<std::string_view, 5> kFilterNames{"box", "bilinear", "bicubic", "lanczos", "nearest"};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

void check_side(std::string_view option, std::uint32_t value) {
  if (value < 1 || value > kMaxSide) {
    refuse(fmt::format("{} is {}: give a number from 1 to {}", option, value, kMaxSide));
  }
}

// Where a window of `part` starts so that it lies in the middle, as Python's round((whole - part) / 2).
std::uint32_t center_offset(std::uint32_t whole, std::uint32_t part) {
  const std::uint32_t difference = whole - part;
  const std::uint32_t half = difference / 2;
  return difference % 2 == 1 && half % 2 == 1 ? half + 1 : half;
}

}  // namespace

std::string_view to_string(Filter filter) noexcept {
  const auto index = static_cast<std::size_t>(filter);
  return index < kFilterNames.size() ? kFilterNames[index] : std::string_view("unknown");
}

std::optional<Filter> filter_from_string(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kFilterNames.size(); ++i) {
    if (kFilterNames[i] == name) return static_cast<Filter>(i);
  }
  return std::nullopt;
}

void PreprocessOptions::check() const {
  if (squash) {
    check_side("`squash` width", squash->width);
    check_side("`squash` height", squash->height);
  } else {
    check_side("`resize`", resize_short);
  }
  if (crop) {
    check_side("`crop` width", crop->width);
    check_side("`crop` height", crop->height);
    const Size least = squash ? *squash : Size{resize_short, resize_short};
    if (crop->width > least.width || crop->height > least.height) {
      refuse(fmt::format(
          "`crop` is {0}x{1}, larger than the {2}x{3} that {4} leaves: make the crop smaller or {4} larger",
          crop->width, crop->height, least.width, least.height, squash ? "`squash`" : "`resize`"));
    }
  } else if (!squash) {
    refuse(
        "`crop` is none, but images resized by their short side differ in size: give `crop`, or use "
        "`squash`");
  }
  if (static_cast<std::size_t>(filter) >= kFilterNames.size()) {
    refuse(fmt::format("`filter` is {}: give box, bilinear, bicubic, lanczos or nearest",
                       static_cast<int>(filter)));
  }
  if (dtype != DType::u8 && dtype != DType::u16 && dtype != DType::f16 && dtype != DType::bf16 &&
      dtype != DType::f32) {
    refuse(fmt::format("`dtype` is {}: give u8, u16, f16, bf16 or f32", shard::to_string(dtype)));
  }
  if (channels > kMaxSampleChannels)
    refuse(fmt::format("`channels` is {}: give 1 to {}", channels, kMaxSampleChannels));
  if (layout != Layout::nchw && layout != Layout::nhwc) {
    refuse(fmt::format("`layout` is {}: give nchw or nhwc", static_cast<int>(layout)));
  }
  const std::size_t count = normalization.mean.size();
  if (count != normalization.std.size())
    refuse(fmt::format("`mean` has {} numbers and `std` {}: give one for each channel in both", count,
                       normalization.std.size()));
  const std::uint32_t known = wide() ? channels : 3;  // 0: not yet
  if (known != 0 && count != (known <= 3 || (known == 4 && count == 3) ? 3 : known) &&
      !is_identity(normalization))
    refuse(fmt::format("`mean` and `std` have {} numbers, the samples {} channels: give one for each channel",
                       count, known));
  for (std::size_t channel = 0; channel < count; ++channel) {
    if (!std::isfinite(normalization.mean[channel])) {
      refuse(fmt::format("`mean` of channel {} is {}: give a finite number", channel,
                         normalization.mean[channel]));
    }
    if (!std::isfinite(normalization.std[channel]) || normalization.std[channel] == 0.0F) {
      refuse(fmt::format("`std` of channel {} is {}: give a finite number other than 0", channel,
                         normalization.std[channel]));
    }
  }
  if (const std::string mistake = scale_mistake(normalization); !mistake.empty())
    refuse("`mean` and `std`: " + mistake);
}

SampleSpec PreprocessOptions::sample_spec() const {
  const Size size = crop ? *crop : squash.value_or(Size{resize_short, resize_short});
  return {dtype, layout, channels == 0 ? 3 : channels, size.height, size.width};
}

Size resized_size(Size source, const PreprocessOptions& options) {
  if (source.width == 0 || source.height == 0) {
    refuse(fmt::format("image of {}x{} pixels: give one with at least one", source.width, source.height));
  }
  if (options.squash) return *options.squash;
  const bool tall = source.height >= source.width;
  const std::uint64_t short_side = tall ? source.width : source.height;
  const std::uint64_t long_side = tall ? source.height : source.width;
  // As Python's int(size * long / short).
  const double resized =
      static_cast<double>(options.resize_short * long_side) / static_cast<double>(short_side);
  constexpr double kMaxResized = 0x7FFFFFFF;
  if (resized > kMaxResized) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format(
            "image of {}x{} pixels: with the short side {} the long one would be {:.0f}, more than {:.0f}; "
            "leave it out or use squash",
            source.width, source.height, options.resize_short, resized, kMaxResized));
  }
  const auto resized_long = static_cast<std::uint32_t>(resized);
  return tall ? Size{options.resize_short, resized_long} : Size{resized_long, options.resize_short};
}

Box crop_box(Size resized, const PreprocessOptions& options) {
  const Size size = options.crop.value_or(resized);
  if (size.width > resized.width || size.height > resized.height) {
    refuse(fmt::format("crop is {}x{}, larger than the resized image's {}x{}", size.width, size.height,
                       resized.width, resized.height));
  }
  return {center_offset(resized.width, size.width), center_offset(resized.height, size.height), size.width,
          size.height};
}

}  // namespace shard::image
