// Whether a transform is possible for some samples, and what it delivers.
#include <fmt/format.h>
#include <fmt/ranges.h>

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

namespace shard {

namespace {

std::string numbers(const std::vector<float>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

// What operations are applied to, if the stored dtype allows it.
SampleSpec pixels_to_augment(const TransformWork& work) {
  SampleSpec pixels = augment::pixels_of(work.delivered);
  pixels.dtype = work.stored.dtype;
  return pixels;
}

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

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
    if (options.crop_height < 1 || options.crop_width < 1)
      refuse(fmt::format("crop_height is {} and crop_width {}; they must be at least 1 for a crop",
                         options.crop_height, options.crop_width));
    const bool resized = options.crop == CropKind::random_resized;
    if (!resized && (options.crop_height > stored.height || options.crop_width > stored.width))
      refuse(
          fmt::format("the crop of {} x {} is larger than the stored samples of {} x {}: lower "
                      "crop_height or crop_width",
                      options.crop_height, options.crop_width, stored.height, stored.width));
    if (options.crop_height > kMaxResized || options.crop_width > kMaxResized)
      refuse(fmt::format("the crop of {} x {} exceeds {} x {} (crop_height x crop_width)",
                         options.crop_height, options.crop_width, kMaxResized, kMaxResized));
    if (resized &&
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
        normalization.std[c] == 0)
      refuse(
          fmt::format("normalization has mean {} and std {} in channel {}; both must be finite and std not 0",
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
  if (options.flip_probability != 0) refuse(what + ": they cannot be flipped; leave flip_probability at 0");
  if (options.layout.value_or(Layout::tensor) != Layout::tensor)
    refuse(what + ": they have no layout; leave layout out");
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

SampleSpec check_transform(const SampleSpec& stored, const TransformOptions& options) {
  stored.check();
  if (stored.is_tensor()) return check_tensors(stored, options);
  SampleSpec delivered = stored;
  delivered.dtype = options.dtype.value_or(stored.dtype);
  delivered.layout = options.layout.value_or(stored.layout);
  if (delivered.layout != Layout::nchw && delivered.layout != Layout::nhwc)
    refuse(fmt::format("layout is {}; it must be nchw (0) or nhwc (1)", static_cast<int>(delivered.layout)));
  check_crop_options(stored, options);
  if (options.crop != CropKind::none) {
    delivered.height = options.crop_height;
    delivered.width = options.crop_width;
  }
  if (!(options.flip_probability >= 0 && options.flip_probability <= 1))
    refuse(fmt::format("flip_probability is {}; it must be 0 to 1", options.flip_probability));
  check_delivered_dtype(stored.dtype, delivered.dtype);
  if (options.normalization) check_delivered_values(stored, delivered.dtype, *options.normalization);
  return delivered;
}

bool is_identity(const SampleSpec& stored, const TransformOptions& options) {
  const bool normalizes = is_float(stored.dtype) && options.normalization;
  return !normalizes && options.operations.empty() && options.flip_probability == 0 &&
         options.crop != CropKind::random_resized && check_transform(stored, options) == stored;
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
  work.normalize = !work.stored.is_tensor() && (is_float(work.stored.dtype) ? asked.normalization.has_value()
                                                                            : is_float(work.delivered.dtype));
  check_operations(pixels_to_augment(work), options.operations, view);
  return work;
}

bool decodes_frames(const DatasetInfo& info) { return make_stored_form(info)->decoded_by_device(); }

bool is_identity(const DatasetInfo& info, const TransformOptions& options) {
  const TransformWork work = plan_transform(info, options);
  return !decodes_frames(info) && work.delivered == info.spec && !work.normalize &&
         options.operations.empty() && options.flip_probability == 0 &&
         options.crop != CropKind::random_resized;
}

}  // namespace shard
