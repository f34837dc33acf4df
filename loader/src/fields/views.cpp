#include "fields/views.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "codec/stored_form.hpp"
#include "shard/error.hpp"
#include "transform/augment/operation_draws.hpp"
#include "transform/check_work.hpp"

namespace shard {

std::size_t view_count(const LoaderOptions& options) noexcept { return 1 + options.further_views.size(); }

const TransformOptions& view_options(const LoaderOptions& options, std::size_t view) noexcept {
  return view == 0 ? options.transform : options.further_views[view - 1];
}

std::vector<TransformOptions> views_of(const LoaderOptions& options) {
  std::vector<TransformOptions> views{options.transform};
  views.insert(views.end(), options.further_views.begin(), options.further_views.end());
  return views;
}

void set_views(LoaderOptions& options, std::vector<TransformOptions> views) {
  options.transform = std::move(views.front());
  views.erase(views.begin());
  options.further_views = std::move(views);
}

void name_layouts(const DatasetInfo& info, LoaderOptions& options) {
  if (info.spec.is_tensor() || options.unnamed_layout == UnnamedLayout::stored) return;
  std::vector<TransformOptions> views = views_of(options);
  for (TransformOptions& view : views)
    if (!view.layout && view.patch == 0 &&
        (options.unnamed_layout == UnnamedLayout::nchw || is_float(view.dtype.value_or(info.spec.dtype))))
      view.layout = Layout::nchw;
  set_views(options, std::move(views));
}

TransformOptions view_of_bucket(const LoaderOptions& options, const Bucket& bucket) {
  TransformOptions view = options.transform;
  view.resize = ResizeKind::cover;
  view.resize_height = bucket.height;
  view.resize_width = bucket.width;
  if (options.bucket_crop == BucketCrop::random) {
    view.crop = CropKind::random;
    view.crop_height = bucket.height;
    view.crop_width = bucket.width;
  }
  return view;
}

std::vector<TransformOptions> bucket_views(const LoaderOptions& options) {
  std::vector<TransformOptions> views;
  for (const Bucket& bucket : options.buckets) views.push_back(view_of_bucket(options, bucket));
  return views;
}

SampleSpec spec_in_batch(const TransformWork& work) {
  if (work.patch == 0) return work.delivered;
  const std::array<std::uint64_t, 1> elements{work.delivered.elements()};
  return tensor_spec(work.delivered.dtype, elements);
}

bool sizes_differ(const LoaderOptions& options, std::size_t view) noexcept {
  return !options.buckets.empty() || view_options(options, view).padded != 0;
}

namespace {

void check_patches(const LoaderOptions& options, std::size_t view) {
  const TransformOptions& of = view_options(options, view);
  if (of.padded != 0 && options.mix.enabled())
    throw Error(
        ErrorCode::invalid_argument,
        "padded: two samples have different sizes, so mixed pairs would mix what is around them; leave "
        "mixup and cutmix out, or use letterbox, squash or a crop");
  if (of.patch == 0) return;
  const auto refuse = [](const std::string& message) {
    throw Error(ErrorCode::invalid_argument, "patch: " + message);
  };
  if (options.mix.enabled())
    refuse(
        "two samples have patches of different numbers and places, so a pair has no common pixels to mix; "
        "leave mixup and cutmix out, or use letterbox, squash or a crop");
  if (!options.boxes.empty() || !options.keypoints.empty() || options.correspondence)
    refuse(
        "boxes, keypoints and correspondence do not follow patches; deliver these columns as stored "
        "(as_stored), or use another view");
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 31U) - 1;
  if (options.most_rows() > kMost / of.max_tokens)
    refuse(fmt::format("{} samples of {} patches are more than {}: lower batch_size or max_tokens",
                       options.most_rows(), of.max_tokens, kMost));
}

// The transform of the bucket with the most pixels.
TransformWork plan_buckets(const DatasetInfo& info, const LoaderOptions& options) {
  const auto refuse = [](const std::string& message) {
    throw Error(ErrorCode::invalid_argument, "buckets: " + message);
  };
  check_buckets(options.buckets);
  if (!info.spec.is_free())
    refuse(fmt::format("they are for samples of any size, and these are all {} x {}: leave them out",
                       info.spec.height, info.spec.width));
  if (!options.further_views.empty()) refuse("they are for one view; leave further_views out");
  if (options.mix.enabled())
    refuse(
        "their batches may have an odd number of samples, and mixup and cutmix mix pairs; leave these out");
  const TransformOptions& view = options.transform;
  if (view.crop != CropKind::none || view.resize != ResizeKind::none || view.padded != 0 || view.patch != 0)
    refuse("each sample is resized to cover its bucket: leave crop, resize, padded and patch out");
  std::optional<TransformWork> largest;
  for (const TransformOptions& bucket : bucket_views(options)) {
    TransformWork work = plan_transform(info, bucket);
    if (!largest || work.delivered.elements() > largest->delivered.elements()) largest = std::move(work);
  }
  return *largest;
}

}  // namespace

std::vector<TransformWork> plan_views(const DatasetInfo& info, const LoaderOptions& options) {
  if (view_count(options) > kMaxViews)
    throw Error(ErrorCode::invalid_argument, fmt::format("a batch of {} views of each sample; at most {}",
                                                         view_count(options), kMaxViews));
  std::vector<TransformWork> works;
  if (!options.buckets.empty()) return {plan_buckets(info, options)};
  for (std::size_t view = 0; view < view_count(options); ++view) {
    try {
      works.push_back(plan_transform(info, view_options(options, view), static_cast<std::uint32_t>(view)));
    } catch (const Error& error) {
      const std::string message = error.what();
      if (view_count(options) == 1 || message.starts_with("view ")) throw;
      throw Error(error.code(), fmt::format("view {}: {}", view, message));
    }
  }
  for (std::size_t view = 0; view < works.size(); ++view) check_patches(options, view);
  check_mix(options.mix);
  if (options.mix.enabled()) {
    auto refuse = [](const std::string& message) {
      throw Error(ErrorCode::invalid_argument, "mixup and cutmix: " + message);
    };
    if (works.size() > 1)
      refuse(fmt::format("a batch of {} views of each sample; it is for one view", works.size()));
    if (works[0].stored.dtype != DType::u8 || works[0].stored.is_tensor())
      refuse(fmt::format(
          "the samples are stored as {} values; it is for samples stored as u8 or with codec packed",
          to_string(works[0].stored.dtype)));
    if (options.batch_size % 2 != 0)
      refuse(
          fmt::format("batch_size is {}; it must be even, because neighbours are mixed", options.batch_size));
    if (options.tail == Tail::short_)
      refuse("tail is short, whose last batch may be odd; use drop, pad or wrap");
  }
  return works;
}

bool delivers_stored(const DatasetInfo& info, const LoaderOptions& options) {
  return options.further_views.empty() && !options.mix.enabled() && options.buckets.empty() &&
         is_identity(info, options.transform);
}

std::uint64_t crop_seed(std::uint64_t seed, std::size_t view) noexcept {
  return view == 0 ? seed
                   : augment::derived_seed(seed, static_cast<std::uint32_t>(view), augment::kDrawCrop, 0);
}

}  // namespace shard
