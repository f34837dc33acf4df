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

constexpr std::uint64_t kMaxArea = std::uint64_t{1} << 32U;
constexpr std::uint32_t kMaxMultiple = 4096;
constexpr std::array<std::string_view, 5> kFilterNames{"box", "bilinear", "bicubic", "lanczos", "nearest"};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

void check_side(std::string_view option, std::uint32_t value) {
  if (value < 1 || value > kMaxSide) {
    refuse(fmt::format("{} is {}: give a number from 1 to {}", option, value, kMaxSide));
  }
}

// Values between 0 and 1 stay finite if these two do.
void check_range(DType dtype, const Normalization& normalization, std::size_t channel) {
  if (!is_floating(dtype)) return;
  const float mean = normalization.mean[channel];
  const float std = normalization.std[channel];
  for (const float end : {0.0F, 1.0F}) {
    const float value = (end - mean) / std;
    if (std::isinf(value_of_bits(dtype, rounded_bits(dtype, value))))
      refuse(fmt::format(
          "`std` of channel {} is {}: ({} - {}) / {} is too large for dtype {}; give a larger std{}", channel,
          std, end, mean, std, shard::to_string(dtype), std::isinf(value) ? "" : " or dtype f32"));
  }
}

// Where a window of `part` starts so that it lies in the middle, as Python's round((whole - part) / 2).
std::uint32_t center_offset(std::uint32_t whole, std::uint32_t part) {
  const std::uint32_t difference = whole - part;
  const std::uint32_t half = difference / 2;
  return difference % 2 == 1 && half % 2 == 1 ? half + 1 : half;
}

void check_free_size(const FreeSize& free) {
  if (free.multiple < 1 || free.multiple > kMaxMultiple)
    refuse(fmt::format("`multiple` is {}: give a number from 1 to {}", free.multiple, kMaxMultiple));
  switch (free.bound) {
    case FreeSize::Bound::none:
      return;
    case FreeSize::Bound::longest:
    case FreeSize::Bound::shortest:
      if (free.most >= free.multiple && free.most <= kMaxSide) return;
      refuse(fmt::format("`{}` is {}: give a number from `multiple`, here {}, to {}",
                         free.bound == FreeSize::Bound::longest ? "longest" : "shortest", free.most,
                         free.multiple, kMaxSide));
    case FreeSize::Bound::area:
      if (free.most >= std::uint64_t{free.multiple} * free.multiple && free.most <= kMaxArea) return;
      refuse(fmt::format("`area` is {} pixels: give a number from `multiple` x `multiple`, here {}, to {}",
                         free.most, std::uint64_t{free.multiple} * free.multiple, kMaxArea));
  }
  refuse(fmt::format("the bound of sizes is {}: give none, longest, shortest or area",
                     static_cast<int>(free.bound)));
}

// int(side * most / of), at least 1.
std::uint32_t scaled_side(std::uint32_t side, std::uint64_t most, std::uint32_t of) {
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, side * most / of));
}

Size free_resized_size(Size source, const FreeSize& free) {
  const auto [width, height] = source;
  const bool tall = height >= width;
  if (free.bound == FreeSize::Bound::area) {
    const std::uint64_t pixels = std::uint64_t{width} * height;
    if (pixels <= free.most) return source;
    const double scale = std::sqrt(static_cast<double>(free.most) / static_cast<double>(pixels));
    const auto scaled = [&](std::uint32_t side) {
      return static_cast<std::uint32_t>(std::max(1.0, side * scale));
    };
    // A side of 1 is not scaled further, so the long one bounds the area.
    const auto bounded = [&](std::uint32_t side, std::uint32_t other) {
      return static_cast<std::uint32_t>(std::min<std::uint64_t>(side, free.most / other));
    };
    Size size{scaled(width), scaled(height)};
    if (tall)
      size.height = bounded(size.height, size.width);
    else
      size.width = bounded(size.width, size.height);
    return size;
  }
  if (free.bound == FreeSize::Bound::none) return source;
  const std::uint32_t side = (free.bound == FreeSize::Bound::longest) == tall ? height : width;
  if (side <= free.most) return source;
  const auto most = static_cast<std::uint32_t>(free.most);
  return side == height ? Size{scaled_side(width, most, height), most}
                        : Size{most, scaled_side(height, most, width)};
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
  if (free_size) {
    check_free_size(*free_size);
    if (squash) refuse("`squash` gives all samples one size, and samples of any size have their own");
  } else if (squash) {
    check_side("`squash` width", squash->width);
    check_side("`squash` height", squash->height);
  } else {
    check_side("`resize`", resize_short);
  }
  if (free_size) {
  } else if (crop) {
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
    check_range(dtype, normalization, channel);
  }
  if (const std::string mistake = scale_mistake(normalization); !mistake.empty())
    refuse("`mean` and `std`: " + mistake);
}

SampleSpec PreprocessOptions::sample_spec() const {
  const Size fixed = crop ? *crop : squash.value_or(Size{resize_short, resize_short});
  const Size size = free_size ? Size{} : fixed;
  return {dtype, layout, channels == 0 ? 3 : channels, size.height, size.width};
}

Size resized_size(Size source, const PreprocessOptions& options) {
  if (source.width == 0 || source.height == 0) {
    refuse(fmt::format("image of {}x{} pixels: give one with at least one", source.width, source.height));
  }
  if (options.free_size) return free_resized_size(source, *options.free_size);
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
  Size size = options.crop.value_or(resized);
  if (options.free_size) {
    const std::uint32_t multiple = options.free_size->multiple;
    size = {resized.width / multiple * multiple, resized.height / multiple * multiple};
    if (size.width < 1 || size.height < 1)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("image of {}x{} pixels, resized: each side must have at least {}, to be a multiple of "
                      "it; leave it out or give a smaller multiple",
                      resized.width, resized.height, multiple));
    if (size.width > kMaxSide || size.height > kMaxSide)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("image of {}x{} pixels: a sample has at most {} rows and columns; leave it out or "
                      "give a bound such as `longest`",
                      resized.width, resized.height, kMaxSide));
  }
  if (size.width > resized.width || size.height > resized.height) {
    refuse(fmt::format("crop is {}x{}, larger than the resized image's {}x{}", size.width, size.height,
                       resized.width, resized.height));
  }
  return {center_offset(resized.width, size.width), center_offset(resized.height, size.height), size.width,
          size.height};
}

}  // namespace shard::image
