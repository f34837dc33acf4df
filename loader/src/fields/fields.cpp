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
  if (field.spec.height != info.spec.height || field.spec.width != info.spec.width)
    refuse(fmt::format("its samples are {} x {} (rows x columns), but images are {} x {}: use stored",
                       field.spec.height, field.spec.width, info.spec.height, info.spec.width));
  check_field_fill(make_stored_form(info, number)->transform_input().dtype, options.fill, refuse);
}

// What plan_transform() must know of the field.
DatasetInfo info_of_field(const DatasetInfo& info, std::size_t number) {
  const FieldSpec& field = info.fields[number];
  DatasetSpec spec;
  spec.spec = field.spec;
  spec.normalization = field.normalization;
  spec.codec = field.codec;
  DatasetInfo result(std::move(spec));
  result.mixed_codecs = info.mixed_codecs;
  return result;
}

TransformOptions options_of_field(const TransformOptions& view, const FieldOptions& field) {
  TransformOptions options;
  if (field.sampling != FieldSampling::stored) {
    options = view;
    options.operations.clear();
  }
  options.dtype = field.dtype;
  options.layout = field.layout;
  options.normalization = field.normalization;
  return options;
}

// `whole`: with everything in one transform.
FieldView plan_field_view(const TransformWork& whole, const FieldOptions& options, bool has_operations,
                          std::uint64_t batch) {
  FieldView view;
  view.delivered = whole.delivered;
  SampleSpec pixels = whole.delivered;
  pixels.dtype = whole.stored.dtype;
  view.follows = options.sampling == FieldSampling::nearest ||
                 (options.sampling == FieldSampling::bilinear && has_operations);
  view.converts = view.follows && (pixels.dtype != whole.delivered.dtype || whole.normalize);
  view.from_stored = view.from_pixels = whole;
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
  const std::uint64_t bytes = round_up(pixels.size_bytes() * batch, kPixelsAlign);
  if (view.follows && view.follow.bilinear) view.pixels_bytes = view.scratch_bytes = bytes;
  if (view.converts) view.between_bytes = bytes;
  return view;
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
        "mix: mixup and cutmix are not defined for boxes, keypoints and correspondence: leave one of them "
        "out, or deliver boxes and keypoints as_stored");
  if (options.mix.mixup > 0)
    refuse("mix: mixup is not defined for fields: leave it out, or use cutmix, which pastes masks too");
  for (const auto& [name, field] : options.fields)
    if (field.sampling != FieldSampling::nearest)
      FieldRefusal{name}("cutmix pastes fields that are delivered with nearest: use that, or leave mix out");
}

std::vector<DeliveredField> delivered_fields(const DatasetInfo& info, const LoaderOptions& options) {
  check_targets(options);
  std::vector<DeliveredField> fields;
  for (const auto& [name, of] : options.fields) {
    DeliveredField field{name, field_named(info, name), of, {}};
    const FieldRefusal refuse(name);
    check_field(info, field.field, of, refuse);
    const DatasetInfo own = info_of_field(info, field.field);
    for (std::size_t number = 0; number < view_count(options); ++number) {
      const TransformOptions& view = view_options(options, number);
      try {
        field.views.push_back(plan_field_view(plan_transform(own, options_of_field(view, of)), of,
                                              !view.operations.empty(), options.most_rows()));
      } catch (const Error& error) {
        refuse(error.what());
      }
      FieldView& made = field.views.back();
      for (const std::uint32_t extent : made.delivered.shape()) made.shape.push_back(extent);
      if (info.fields[field.field].role == FieldRole::mask && !made.delivered.is_tensor())
        made.shape = {made.delivered.height, made.delivered.width};
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
          std::max(memory.decoded_bytes,
                   round_up(form->transform_input().size_bytes() * options.most_rows(), kPixelsAlign));
    for (const FieldView& view : field.views) {
      memory.pixels_bytes = std::max(memory.pixels_bytes, view.pixels_bytes);
      memory.between_bytes = std::max(memory.between_bytes, view.between_bytes);
      memory.scratch_bytes = std::max(memory.scratch_bytes, view.scratch_bytes);
    }
  }
  return memory;
}

}  // namespace shard
