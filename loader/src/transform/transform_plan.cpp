// Whether a transform is possible for some samples, and what it delivers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "codec/stored_form.hpp"
#include "format/shard/normalization_check.hpp"
#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/loader/transform.hpp"
#include "transform/arithmetic.hpp"
#include "transform/augment/host_augment.hpp"
#include "transform/check_work.hpp"
#include "transform/exact/exact_filter.hpp"

namespace shard {

namespace {

std::string numbers(const std::vector<float>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

// What operations are applied to, if the stored dtype allows it. Padded samples and patches: each sample has
// its own size, and the result is free if the stored samples are.
SampleSpec pixels_to_augment(const TransformWork& work, const TransformOptions& options) {
  SampleSpec pixels = augment::pixels_of(work.delivered);
  pixels.dtype = work.stored.dtype;
  if (options.padded == 0 && options.patch == 0) return pixels;
  if (work.stored.is_free()) return pixels.sized(0, 0);
  if (options.patch == 0) {
    const SampleSize size = padded_size(work.stored, options);
    return pixels.sized(size.height, size.width);
  }
  const SampleSize grid = patch_grid(work.stored, options);
  return pixels.sized(grid.height * options.patch, grid.width * options.patch);
}

// The most pixels that operations see of a sample.
std::uint64_t most_pixels(const TransformWork& work, const TransformOptions& options) {
  const std::uint64_t pixels = std::uint64_t{work.delivered.height} * work.delivered.width;
  return options.patch != 0 ? pixels * options.max_tokens : pixels;
}

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

// Whether boxes are resized by exact_filter.hpp, and placed.
bool is_exact(const SampleSpec& stored, const TransformOptions& options) {
  return stored.is_free() || options.resize != ResizeKind::none || options.padded != 0 || options.patch != 0;
}

constexpr std::uint32_t kMaxPatch = 256;
constexpr std::uint32_t kMaxTokens = 65'536;

std::uint32_t padded_to(std::uint32_t side, std::uint32_t multiple) {
  return (side + multiple - 1) / multiple * multiple;
}

void check_resize_options(const SampleSpec& stored, const TransformOptions& options) {
  const std::uint32_t height = options.resize_height;
  const std::uint32_t width = options.resize_width;
  if (options.resize > ResizeKind::cover || options.filter > ResizeFilter::lanczos)
    refuse(
        fmt::format("resize is {} and filter {}; they must be none (0) to cover (5), and bilinear (0) "
                    "to lanczos (3)",
                    static_cast<int>(options.resize), static_cast<int>(options.filter)));
  const std::string_view name = words_of(ResizeKind{})[static_cast<std::size_t>(options.resize)];
  if (options.resize == ResizeKind::none && (height != 0 || width != 0))
    refuse(
        fmt::format("resize_height is {} and resize_width {}, but resize is none: choose shortest, "
                    "longest, squash, letterbox or cover, or leave them 0",
                    height, width));
  if (options.resize != ResizeKind::none) {
    if (height < 1 || width < 1 || height > kMaxResized || width > kMaxResized)
      refuse(fmt::format("resize {} to {} x {}: both must be 1 to {}", name, height, width, kMaxResized));
    const bool one_number = options.resize == ResizeKind::shortest || options.resize == ResizeKind::longest;
    if (one_number && height != width)
      refuse(
          fmt::format("resize {} to {} x {}: it has one number, which is given twice", name, height, width));
    if (one_number && options.crop == CropKind::none && options.padded == 0)
      refuse(
          fmt::format("resize {} to {} makes samples of different sizes, and a batch has one: add a crop "
                      "(center or random), or use squash, letterbox, cover or padded",
                      name, height));
    if (options.crop == CropKind::random_resized)
      refuse(fmt::format("resize is {} and crop random_resized, which resizes itself: leave one out", name));
    if (options.resize == ResizeKind::letterbox && options.crop != CropKind::none)
      refuse("resize is letterbox, which delivers its size: leave crop out");
    const bool whole = options.resize == ResizeKind::squash || options.resize == ResizeKind::cover;
    if (whole && options.crop != CropKind::none &&
        (options.crop_height > height || options.crop_width > width))
      refuse(fmt::format("the crop of {} x {} is larger than what resize {} makes of each sample, {} x {}",
                         options.crop_height, options.crop_width, name, height, width));
  }
  if (!options.fill.empty() && !is_exact(stored, options))
    refuse(
        "fill has a value, but nothing is filled: it belongs to letterbox, and to crops of samples of any "
        "size");
  if (!options.fill.empty() && stored.dtype != DType::u8)
    refuse(fmt::format(
        "fill has bytes, but the samples are stored as {}: leave it out, and zeros are around them",
        to_string(stored.dtype)));
  if (options.fill.size() > 1 && stored.channels > 4)
    refuse(fmt::format("fill has {} values; samples of more than four channels ({}) take one",
                       options.fill.size(), stored.channels));
  if (options.fill.size() > 1 && options.fill.size() != stored.channels)
    refuse(fmt::format("fill has {} values, but the samples have {} channels: give one, or one for each",
                       options.fill.size(), stored.channels));
  if (options.filter != ResizeFilter::bilinear && !is_exact(stored, options))
    refuse(
        fmt::format("filter is {}, but these samples have one size, and random_resized of those is bilinear: "
                    "leave filter out",
                    words_of(ResizeFilter{})[static_cast<std::size_t>(options.filter)]));
  if (stored.is_free() && options.resize == ResizeKind::none && options.crop == CropKind::none &&
      options.padded == 0 && options.patch == 0)
    refuse(
        "the samples are of any size, and a batch has one: choose random_resized, a crop (center or "
        "random), a resize (squash, letterbox, cover, or shortest or longest with a crop), buckets, "
        "padded or patch");
  if (options.padded > kMaxResized)
    refuse(fmt::format("padded is {}; it must be 0 to {}", options.padded, kMaxResized));
  if ((options.patch != 0) != (options.max_tokens != 0) || options.patch > kMaxPatch ||
      options.max_tokens > kMaxTokens)
    refuse(fmt::format("patch is {} and max_tokens {}; they go together, 1 to {} and 1 to {}", options.patch,
                       options.max_tokens, kMaxPatch, kMaxTokens));
  if (options.patch != 0 &&
      (options.crop != CropKind::none || options.resize != ResizeKind::none || options.padded != 0))
    refuse("patch resizes whole samples: leave crop, resize and padded out");
  if (options.patch != 0 && options.layout.value_or(Layout::nhwc) != Layout::nhwc)
    refuse("patches have their pixels' channels together: leave layout out, or use nhwc");
  const bool keeps_shape = options.resize == ResizeKind::none || options.resize == ResizeKind::longest;
  if (options.padded != 0 && (options.crop != CropKind::none || !keeps_shape))
    refuse("padded keeps whole samples: leave crop out, and resize but for longest");
}

void check_crop_options(const SampleSpec& stored, const TransformOptions& options) {
  if (options.crop > CropKind::random_resized)
    refuse(fmt::format("crop is {}; it must be none (0), center, random or random_resized (3)",
                       static_cast<int>(options.crop)));
  if (options.crop == CropKind::none) {
    if (options.crop_height != 0 || options.crop_width != 0)
      refuse(
          fmt::format("crop_height is {} and crop_width {}, but crop is none: choose center, random or "
                      "random_resized, or leave them 0",
                      options.crop_height, options.crop_width));
  } else {
    const bool exact = is_exact(stored, options);
    if (options.crop_height < 1 || options.crop_width < 1)
      refuse(fmt::format("crop_height is {} and crop_width {}; they must be at least 1 for a crop",
                         options.crop_height, options.crop_width));
    const bool resized = options.crop == CropKind::random_resized;
    if (!exact && !resized && (options.crop_height > stored.height || options.crop_width > stored.width))
      refuse(
          fmt::format("the crop of {} x {} is larger than the stored samples of {} x {}: lower "
                      "crop_height or crop_width",
                      options.crop_height, options.crop_width, stored.height, stored.width));
    if (options.crop_height > kMaxResized || options.crop_width > kMaxResized)
      refuse(fmt::format("the crop of {} x {} exceeds {} x {} (crop_height x crop_width)",
                         options.crop_height, options.crop_width, kMaxResized, kMaxResized));
    if (!exact && resized &&
        (stored.height > kMaxShrink * options.crop_height || stored.width > kMaxShrink * options.crop_width))
      refuse(fmt::format(
          "random_resized to {} x {} would shrink the stored samples of {} x {} more than {} times; raise "
          "crop_height or crop_width",
          options.crop_height, options.crop_width, stored.height, stored.width, kMaxShrink));
  }
  if (options.crop == CropKind::random_resized) {
    if (!(options.scale[0] > 0 && options.scale[0] <= options.scale[1] && options.scale[1] <= 1))
      refuse(fmt::format("scale is [{}, {}]; it must be 0 < low <= high <= 1", options.scale[0],
                         options.scale[1]));
    if (!(options.ratio[0] > 0 && options.ratio[0] <= options.ratio[1] && std::isfinite(options.ratio[1])))
      refuse(
          fmt::format("ratio is [{}, {}]; it must be 0 < low <= high", options.ratio[0], options.ratio[1]));
  }
}

void check_delivered_dtype(DType stored, DType to) {
  if (to > DType::f64)
    refuse(fmt::format("dtype is {}: not a valid dtype; {}, f16, bf16 or f32 can be delivered",
                       static_cast<int>(to), stored == DType::u16 ? "u16" : "u8"));
  if (stored == DType::u16 && to != DType::u16 && !is_float(to))
    refuse(fmt::format("dtype {} cannot be delivered from samples stored as u16: u16, f16, bf16 or f32",
                       to_string(to)));
  if (stored != DType::u16 && to != DType::u8 && !is_float(to))
    refuse(fmt::format("dtype {} cannot be delivered: u8, f16, bf16 or f32", to_string(to)));
  if (is_float(stored) && to == DType::u8)
    refuse(
        fmt::format("dtype is u8, but the samples are stored as {} values, whose bytes are not known; "
                    "deliver f16, bf16 or f32, or convert the images with dtype u8 or codec packed",
                    to_string(stored)));
}

void check_delivered_values(const SampleSpec& stored, DType to, const Normalization& normalization) {
  if (!is_float(to))
    refuse(
        "normalization applies to samples delivered as f16, bf16 or f32; choose one of them as dtype, or "
        "leave normalization out");
  const std::size_t count = normalization.mean.size();
  if (count != normalization.std.size() ||
      count != (stored.channels <= 3 || (count == 3 && stored.channels == 4) ? 3 : stored.channels))
    refuse(
        fmt::format("normalization has {} means and {} stds, but the samples have {} channels: give one for "
                    "each channel",
                    count, normalization.std.size(), stored.channels));
  for (std::size_t c = 0; c < count; ++c)
    if (!std::isfinite(normalization.mean[c]) || !std::isfinite(normalization.std[c]) ||
        normalization.std[c] <= 0)
      refuse(fmt::format(
          "normalization has mean {} and std {} in channel {}; both must be finite and std above 0",
          normalization.mean[c], normalization.std[c], c));
  if (const std::string mistake = is_float(stored.dtype) ? "" : scale_mistake(normalization);
      !mistake.empty())
    refuse("normalization has " + mistake);
}

// Tensors are delivered as they are, or cast from float to float.
SampleSpec check_tensors(const SampleSpec& stored, const TransformOptions& options) {
  const std::string what = fmt::format("the samples are tensors, {} [{}]", to_string(stored.dtype),
                                       fmt::join(stored.shape(), ", "));
  if (options.crop != CropKind::none || options.crop_height != 0 || options.crop_width != 0)
    refuse(what + ": they cannot be cropped; leave crop out");
  if (options.flip != 0) refuse(what + ": they cannot be flipped; leave flip at 0");
  if (options.layout.value_or(Layout::tensor) != Layout::tensor)
    refuse(what + ": they have no layout; leave layout out");
  if (options.resize != ResizeKind::none || options.padded != 0 || options.patch != 0)
    refuse(what + ": they cannot be resized; leave resize, padded and patch out");
  if (!options.fill.empty() || options.filter != ResizeFilter::bilinear)
    refuse(what + ": nothing of them is filled or resized; leave fill and filter out");
  if (options.normalization) refuse(what + ": they are not normalised; leave normalization out");
  if (!options.operations.empty()) refuse(what + ": they have no pixels; leave operations out");
  SampleSpec delivered = stored;
  delivered.dtype = options.dtype.value_or(stored.dtype);
  if (delivered.dtype != stored.dtype && !(is_float(stored.dtype) && is_float(delivered.dtype)))
    refuse(fmt::format("{}: they are delivered as stored{}; dtype {} is not possible", what,
                       is_float(stored.dtype) ? ", or as f16, bf16 or f32" : "",
                       delivered.dtype > DType::f64 ? "unknown" : to_string(delivered.dtype)));
  return delivered;
}

}  // namespace

namespace {

// The largest sample of a data set must not need more taps than there are.
void check_shrinking(const DatasetInfo& info, const TransformWork& work, const TransformOptions& options) {
  if (!work.exact) return;
  const SampleSpec& delivered = work.delivered;
  const bool free = info.spec.is_free();
  const LargestSample largest = free ? info.largest() : LargestSample{info.spec.height, info.spec.width};
  // At least this large is what a box of the largest height or width is resized to.
  const auto least = [&](std::uint32_t side) {
    if (options.patch != 0) return options.patch;
    if (options.resize == ResizeKind::none)
      return options.crop == CropKind::random_resized ? std::min(delivered.height, delivered.width) : side;
    const std::uint32_t least_side = std::min(options.resize_height, options.resize_width);
    // The other side of a long image may be rounded down to almost half.
    const bool rounded = options.resize == ResizeKind::letterbox || options.resize == ResizeKind::longest;
    return std::max(rounded ? least_side / 2 : least_side, 1U);
  };
  for (const std::uint32_t side : {largest.height, largest.width})
    if (exact::most_taps(work.filter, side, least(side)) > exact::kMaxTaps)
      refuse(
          fmt::format("a side of {} pixels (the largest) would be shrunk to {}: one output would see more "
                      "than {} pixels; deliver larger views, or convert with --longest",
                      side, least(side), exact::kMaxTaps));
}

}  // namespace

SampleSpec check_transform(const SampleSpec& stored, const TransformOptions& options) {
  stored.check();
  if (stored.is_tensor()) return check_tensors(stored, options);
  SampleSpec delivered = stored;
  delivered.dtype = options.dtype.value_or(stored.dtype);
  delivered.layout = options.layout.value_or(stored.layout);
  if (delivered.layout != Layout::nchw && delivered.layout != Layout::nhwc)
    refuse(fmt::format("layout is {}; it must be nchw (0) or nhwc (1)", static_cast<int>(delivered.layout)));
  check_crop_options(stored, options);
  check_resize_options(stored, options);
  if (options.resize != ResizeKind::none) {
    delivered.height = options.resize_height;
    delivered.width = options.resize_width;
  }
  if (options.patch != 0) {
    delivered.height = delivered.width = options.patch;
    delivered.layout = Layout::nhwc;
  }
  // The most. Samples of any size that are not resized have no bound here.
  if (options.padded != 0) {
    delivered.height = padded_to(std::max(delivered.height, 1U), options.padded);
    delivered.width = padded_to(std::max(delivered.width, 1U), options.padded);
  }
  if (options.crop != CropKind::none) {
    delivered.height = options.crop_height;
    delivered.width = options.crop_width;
  }
  if (!(options.flip >= 0 && options.flip <= 1))
    refuse(fmt::format("flip is {}; it must be 0 to 1", options.flip));
  check_delivered_dtype(stored.dtype, delivered.dtype);
  if (options.normalization) check_delivered_values(stored, delivered.dtype, *options.normalization);
  return delivered;
}

bool is_identity(const SampleSpec& stored, const TransformOptions& options) {
  const bool normalizes = is_float(stored.dtype) && options.normalization;
  return !normalizes && options.padded == 0 && options.patch == 0 && options.operations.empty() &&
         options.flip == 0 && options.crop != CropKind::random_resized &&
         options.resize == ResizeKind::none && !stored.is_free() &&
         check_transform(stored, options) == stored;
}

TransformWork plan_transform(const DatasetInfo& info, const TransformOptions& given, std::uint32_t view) {
  TransformOptions options = given;
  if (options.normalization) options.normalization = for_channels(*options.normalization, info.spec.channels);
  TransformWork work;
  work.stored = make_stored_form(info)->transform_input();
  work.normalization = options.normalization.value_or(info.normalization);
  TransformOptions asked = options;
  asked.dtype = options.dtype.value_or(info.spec.dtype);
  if (is_float(work.stored.dtype) && options.normalization) {
    const bool has_it = *options.normalization == info.normalization;
    if (!has_it && !is_identity(info.normalization))
      refuse(fmt::format(
          "normalization has mean {}, std {}, but the {} samples were stored with mean {}, std {}: leave "
          "normalization out, or convert the images with dtype u8 or codec packed to choose it when loading",
          numbers(options.normalization->mean), numbers(options.normalization->std),
          to_string(info.spec.dtype), numbers(info.normalization.mean), numbers(info.normalization.std)));
    if (has_it) asked.normalization.reset();
  }
  work.delivered = check_transform(work.stored, asked);
  if (options.padded != 0 && options.resize == ResizeKind::none && info.spec.is_free()) {
    const LargestSample largest = info.largest();
    work.delivered.height = padded_to(largest.height, options.padded);
    work.delivered.width = padded_to(largest.width, options.padded);
  }
  work.exact = is_exact(work.stored, options);
  work.filter = options.filter;
  work.patch = options.patch;
  work.padded = options.padded != 0;
  if (work.exact)
    for (std::size_t c = 0; c < work.fill.size() && !options.fill.empty(); ++c)
      work.fill[c] = options.fill[std::min(c, options.fill.size() - 1)];
  work.fill_value = work.fill[0];
  check_shrinking(info, work, options);
  work.normalize = !work.stored.is_tensor() && (is_float(work.stored.dtype) ? asked.normalization.has_value()
                                                                            : is_float(work.delivered.dtype));
  if (!options.operations.empty() && most_pixels(work, options) * work.delivered.channels >= 1ULL << 31U)
    refuse(fmt::format("view {}: operations take samples of fewer than 2^31 values, not of {}", view,
                       most_pixels(work, options) * work.delivered.channels));
  check_operations(pixels_to_augment(work, options), options.operations, view);
  return work;
}

bool decodes_frames(const DatasetInfo& info) { return make_stored_form(info)->decoded_by_device(); }

bool is_identity(const DatasetInfo& info, const TransformOptions& options) {
  const TransformWork work = plan_transform(info, options);
  return !decodes_frames(info) && !work.exact && work.delivered == info.spec && !work.normalize &&
         options.operations.empty() && options.flip == 0 && options.crop != CropKind::random_resized;
}

}  // namespace shard
