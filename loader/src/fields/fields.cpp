#include "fields/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.hpp"
#include "base/text/quote.hpp"
#include "fields/views.hpp"
#include "shard/error.hpp"
#include "transform/check_work.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kPixelsAlign = 256;

// Throws for one field.
class FieldRefusal {
 public:
  explicit FieldRefusal(const std::string& name) : name_(name) {}
  [[noreturn]] void operator()(const std::string& why) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("field {}: {}", quoted(name_), why));
  }

 private:
  const std::string& name_;
};

std::size_t field_named(const DatasetInfo& info, const std::string& name) {
  if (const auto found = find_field(info.fields, name)) return *found;
  std::string known;
  for (const FieldSpec& field : info.fields) known += (known.empty() ? "" : ", ") + quoted(field.name);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("option fields names {}: the data set has {}", quoted(name),
                          known.empty() ? std::string("no further image fields") : known));
}

// `dtype`: that the transform reads.
void check_field_fill(DType dtype, double fill, const FieldRefusal& refuse) {
  const double most = dtype == DType::u8 ? 255 : 65535;
  if (is_float(dtype) ? !std::isfinite(fill) : !(fill >= 0 && fill <= most && fill == std::floor(fill)))
    refuse(fmt::format(
        "fill is {}; samples of {} take {}", fill, to_string(dtype),
        is_float(dtype) ? std::string("finite numbers") : fmt::format("whole numbers from 0 to {}", most)));
}

void check_field(const DatasetInfo& info, std::size_t number, const FieldOptions& options,
                 const FieldRefusal& refuse) {
  const FieldSpec& field = info.fields[number];
  const bool mask = field.role == FieldRole::mask;
  if (options.sampling > FieldSampling::stored)
    refuse(fmt::format("sampling is {}; it must be nearest (0), bilinear or stored (2)",
                       static_cast<int>(options.sampling)));
  if (mask && options.sampling == FieldSampling::bilinear)
    refuse("it is a mask, whose class ids have no values between them: use nearest");
  if (mask && (options.dtype || options.layout || options.normalization))
    refuse("it is a mask, which is delivered as stored: leave dtype, layout and normalization out");
  if (options.sampling == FieldSampling::stored) return;
  if (field.spec.is_tensor() || info.spec.is_tensor())
    refuse("a tensor has no pixels, and cannot follow a crop: use stored");
  if (info.spec.is_free() && !field.spec.is_free())
    refuse(
        fmt::format("its samples are all {} x {} (rows x columns), but each image has its own size: use "
                    "stored",
                    field.spec.height, field.spec.width));
  if (field.spec.height != info.spec.height || field.spec.width != info.spec.width)
    refuse(fmt::format("its samples are {} x {} (rows x columns), but images are {} x {}: use stored",
                       field.spec.height, field.spec.width, info.spec.height, info.spec.width));
  check_field_fill(make_stored_form(info, number)->transform_input().dtype, options.fill, refuse);
}

// What plan_transform() must know of the field. Its samples of any size are as large as their images.
DatasetInfo info_of_field(const DatasetInfo& info, std::size_t number) {
  const FieldSpec& field = info.fields[number];
  DatasetSpec spec;
  spec.spec = field.spec;
  spec.normalization = field.normalization;
  spec.codec = field.codec;
  DatasetInfo result(std::move(spec));
  result.mixed_codecs = info.mixed_codecs;
  if (!field.spec.is_free()) return result;
  const LargestSample images = info.largest();
  LargestSample largest = info.largest(number);
  largest.height = images.height;
  largest.width = images.width;
  ShardSummary all;
  all.largest = {largest};
  result.shards.push_back(std::move(all));
  return result;
}

TransformOptions options_of_field(const TransformOptions& view, const FieldOptions& field) {
  TransformOptions options;
  if (field.sampling != FieldSampling::stored) {
    options = view;
    options.operations.clear();
    options.filter = ResizeFilter::bilinear;
    options.fill.clear();  // of the images
  }
  options.dtype = field.dtype;
  options.layout = field.layout;
  options.normalization = field.normalization;
  return options;
}

// `whole`: with everything in one transform. `elements`: that a batch delivers, at most.
FieldView plan_field_view(TransformWork whole, const FieldOptions& options, bool has_operations,
                          std::uint64_t elements) {
  FieldView view;
  view.delivered = whole.delivered;
  view.delivered_bytes = elements * size_bytes(whole.delivered.dtype);
  whole.fill_value = static_cast<float>(options.fill);
  if (whole.exact && whole.stored.dtype == DType::u8)
    whole.fill.fill(static_cast<std::uint8_t>(options.fill));
  SampleSpec pixels = whole.delivered;
  pixels.dtype = whole.stored.dtype;
  view.follows = options.sampling == FieldSampling::nearest ||
                 (options.sampling == FieldSampling::bilinear && has_operations);
  view.converts = view.follows && (pixels.dtype != whole.delivered.dtype || whole.normalize);
  view.from_stored = view.from_pixels = whole;
  view.from_pixels.exact = false;
  view.from_stored.target_is_read_soon = view.follows;
  if (view.follows) {
    view.from_stored.delivered = pixels;
    view.from_stored.normalize = false;
  }
  view.from_pixels.stored = pixels;
  view.follow.bilinear = options.sampling == FieldSampling::bilinear;
  view.follow.stored = view.follow.bilinear ? pixels : whole.stored;
  view.follow.height = pixels.height;
  view.follow.width = pixels.width;
  view.follow.layout = pixels.layout;
  view.follow.fill = static_cast<float>(options.fill);
  const std::uint64_t bytes = round_up(elements * size_bytes(pixels.dtype), kPixelsAlign);
  if (view.follows && view.follow.bilinear) view.pixels_bytes = view.scratch_bytes = bytes;
  if (view.converts) view.between_bytes = bytes;
  return view;
}

// The options of a view; with buckets those of the largest one.
TransformOptions largest_view(const LoaderOptions& options, std::size_t number) {
  if (options.buckets.empty()) return view_options(options, number);
  const std::vector<TransformOptions> views = bucket_views(options);
  return *std::max_element(views.begin(), views.end(), [](const auto& a, const auto& b) {
    return std::uint64_t{a.resize_height} * a.resize_width < std::uint64_t{b.resize_height} * b.resize_width;
  });
}

std::uint64_t most_elements(const TransformWork& work, const TransformOptions& view,
                            const LoaderOptions& options) {
  std::uint64_t most = 0;
  for_each_size(work, view, options, [&](const SampleSpec& delivered, std::uint64_t rows) {
    most = std::max(most, delivered.elements() * rows);
  });
  return most;
}

bool has_boxes_or_points(const LoaderOptions& options) noexcept {
  return !options.boxes.empty() || !options.keypoints.empty() || options.correspondence;
}

}  // namespace

bool has_targets(const LoaderOptions& options) noexcept {
  return !options.fields.empty() || has_boxes_or_points(options);
}

void check_targets(const LoaderOptions& options) {
  auto refuse = [](const std::string& message) { throw Error(ErrorCode::invalid_argument, message); };
  if (!has_targets(options)) return;
  for (std::size_t view = 0; view < view_count(options); ++view)
    if (mixes(view_options(options, view).operations))
      refuse(
          fmt::format("view {}: aug_mix blends samples that were moved in different ways, so targets cannot "
                      "follow: use another policy, or deliver no fields, and boxes and keypoints as_stored",
                      view));
  if (!options.mix.enabled()) return;
  if (has_boxes_or_points(options))
    refuse(
        "mixup and cutmix are not defined for boxes, keypoints and correspondence: leave one of them "
        "out, or deliver boxes and keypoints as_stored");
  if (options.mix.mixup > 0)
    refuse("mixup is not defined for fields: leave it out, or use cutmix, which pastes masks too");
  for (const auto& [name, field] : options.fields)
    if (field.sampling != FieldSampling::nearest)
      FieldRefusal{name}(
          "cutmix pastes fields that are delivered with nearest: use that, or leave cutmix out");
}

std::vector<std::uint64_t> FieldView::shape(std::uint32_t height, std::uint32_t width) const {
  SampleSpec spec = delivered;
  if (!spec.is_tensor()) {
    if (is_mask) return {height, width};
    spec.height = height;
    spec.width = width;
  }
  const std::vector<std::uint32_t> axes = spec.shape();
  return {axes.begin(), axes.end()};
}

std::vector<DeliveredField> delivered_fields(const DatasetInfo& info, const LoaderOptions& options) {
  check_targets(options);
  std::vector<DeliveredField> fields;
  for (const auto& [name, of] : options.fields) {
    DeliveredField field{name, field_named(info, name), of, {}};
    const FieldRefusal refuse(name);
    check_field(info, field.field, of, refuse);
    const DatasetInfo own = info_of_field(info, field.field);
    const auto form = make_stored_form(info, field.field);
    for (std::size_t number = 0; number < view_count(options); ++number) {
      const TransformOptions view = largest_view(options, number);
      try {
        TransformWork whole = plan_transform(own, options_of_field(view, of));
        // As only_decodes() leaves them.
        if (form->is_free() && form->decoded_by_device()) whole.stored.layout = Layout::nhwc;
        const std::uint64_t elements = of.sampling == FieldSampling::stored
                                           ? whole.delivered.elements() * options.most_rows()
                                           : most_elements(whole, view, options);
        field.views.push_back(plan_field_view(std::move(whole), of, !view.operations.empty(), elements));
      } catch (const Error& error) {
        refuse(error.what());
      }
      field.views.back().is_mask = info.fields[field.field].role == FieldRole::mask;
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

StoredForms stored_forms(const DatasetInfo& info, const LoaderOptions& options) {
  StoredForms forms{make_stored_form(info)};
  for (const auto& field : options.fields)
    forms.push_back(make_stored_form(info, field_named(info, field.first)));
  return forms;
}

FieldMemory field_memory(const DatasetInfo& info, const LoaderOptions& options) {
  FieldMemory memory;
  for (const DeliveredField& field : delivered_fields(info, options)) {
    const auto form = make_stored_form(info, field.field);
    if (form->decoded_by_device())
      memory.decoded_bytes =
          std::max(memory.decoded_bytes, round_up(form->decoded_room_bytes(options), kPixelsAlign));
    for (const FieldView& view : field.views) {
      memory.pixels_bytes = std::max(memory.pixels_bytes, view.pixels_bytes);
      memory.between_bytes = std::max(memory.between_bytes, view.between_bytes);
      memory.scratch_bytes = std::max(memory.scratch_bytes, view.scratch_bytes);
    }
  }
  return memory;
}

}  // namespace shard
