#include "shard/dataset_spec.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/quote.hpp"

namespace shard {
namespace {

[[noreturn]] void refuse_spec(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

void check_range(std::string_view field, std::uint32_t value, std::uint32_t last) {
  if (value >= 1 && value <= last) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("sample {} is {}: it must be 1 to {}", field, value, last));
}

std::string text_of(const SampleSpec& spec) {
  if (spec.is_free())
    return fmt::format("{} {} of {} channels, any size", to_string(spec.dtype), to_string(spec.layout),
                       spec.channels);
  return fmt::format("{} {} [{}]", to_string(spec.dtype), to_string(spec.layout),
                     fmt::join(spec.shape(), ", "));
}

std::string text_of(const Normalization& normalization) {
  return fmt::format("mean [{}], std [{}]", fmt::join(normalization.mean, ", "),
                     fmt::join(normalization.std, ", "));
}

// The entries that `other` has not, or has otherwise.
std::string text_of(const Provenance& provenance, const Provenance& other) {
  std::string text;
  const auto add = [&](std::string_view key, const std::string& value) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value);
  };
  for (const auto& [key, value] : provenance) {
    const auto there = other.find(key);
    if (there == other.end() || there->second != value) add(key, quoted_excerpt(value));
  }
  for (const auto& [key, value] : other)
    if (!provenance.contains(key)) add(key, "not recorded");
  return text;
}

std::vector<ColumnSpec> by_name(std::vector<ColumnSpec> columns) {
  std::sort(columns.begin(), columns.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return columns;
}

std::string text_of(const std::vector<ColumnSpec>& columns) {
  std::string text;
  for (const ColumnSpec& column : columns)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", quoted_excerpt(column.name), to_string(column));
  return text;
}

std::string text_of(const std::vector<FieldSpec>& fields) {
  std::string text;
  for (const FieldSpec& field : fields)
    text += fmt::format("{}{} {}, {}", text.empty() ? "" : "; ", quoted_excerpt(field.name), to_string(field),
                        text_of(field.normalization));
  return text.empty() ? "none" : text;
}

}  // namespace

std::optional<SpecDifference> difference(const DatasetSpec& found, const DatasetSpec& stated) {
  if (found.spec != stated.spec) return SpecDifference{"sample", text_of(found.spec), text_of(stated.spec)};
  if (found.codec != stated.codec)
    return SpecDifference{"codec", to_string(found.codec), to_string(stated.codec)};
  if (found.normalization != stated.normalization)
    return SpecDifference{"normalization", text_of(found.normalization), text_of(stated.normalization)};
  if (found.provenance != stated.provenance)
    return SpecDifference{"provenance", text_of(found.provenance, stated.provenance),
                          text_of(stated.provenance, found.provenance)};
  const std::vector<ColumnSpec> columns = by_name(found.columns);
  const std::vector<ColumnSpec> stated_columns = by_name(stated.columns);
  if (columns != stated_columns) return SpecDifference{"columns", text_of(columns), text_of(stated_columns)};
  if (found.fields != stated.fields)
    return SpecDifference{"fields", text_of(found.fields), text_of(stated.fields)};
  if (found.fingerprint != stated.fingerprint)
    return SpecDifference{"fingerprint", found.fingerprint, stated.fingerprint};
  return std::nullopt;
}

std::string_view to_string(ColumnKind kind) noexcept {
  switch (kind) {
    case ColumnKind::fixed:
      break;
    case ColumnKind::ragged:
      return "ragged";
    case ColumnKind::text:
      return "text";
  }
  return "fixed";
}

std::optional<ColumnKind> column_kind_from_string(std::string_view name) noexcept {
  for (const ColumnKind kind : {ColumnKind::fixed, ColumnKind::ragged, ColumnKind::text})
    if (name == to_string(kind)) return kind;
  return std::nullopt;
}

std::string_view to_string(FieldRole role) noexcept { return role == FieldRole::mask ? "mask" : "image"; }

std::optional<FieldRole> field_role_from_string(std::string_view name) noexcept {
  for (const FieldRole role : {FieldRole::image, FieldRole::mask})
    if (name == to_string(role)) return role;
  return std::nullopt;
}

std::string to_string(const FieldSpec& field) {
  return fmt::format("{} {} {}", to_string(field.role), text_of(field.spec), to_string(field.codec));
}

std::optional<std::size_t> find_field(std::span<const FieldSpec> fields, std::string_view name) noexcept {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == name) return i;
  return std::nullopt;
}

std::uint64_t ColumnSpec::row_bytes() const noexcept {
  std::uint64_t bytes = shard::size_bytes(dtype);
  for (const std::uint64_t axis : row_shape) bytes *= axis;
  return bytes;
}

std::string to_string(const ColumnSpec& column) {
  if (column.kind == ColumnKind::text) return "text";
  return fmt::format("{}{} [{}]", column.kind == ColumnKind::ragged ? "ragged " : "", to_string(column.dtype),
                     fmt::join(column.row_shape, ", "));
}

std::vector<std::uint32_t> SampleSpec::shape() const {
  if (layout == Layout::nchw) return {channels, height, width};
  if (layout == Layout::nhwc) return {height, width, channels};
  return {axes.begin(), std::find(axes.begin(), axes.end(), 0U)};
}

void SampleSpec::check() const {
  if (layout == Layout::tensor) {
    const std::vector<std::uint32_t> shape = this->shape();
    if (*this != tensor_spec(dtype, std::vector<std::uint64_t>(shape.begin(), shape.end())))
      refuse_spec("sample of layout tensor: its channels, height, width and axes contradict each other");
    return;
  }
  if (layout != Layout::nchw && layout != Layout::nhwc)
    refuse_spec(
        fmt::format("sample layout is {}: it must be nchw, nhwc or tensor", static_cast<int>(layout)));
  if (dtype != DType::u8 && dtype != DType::u16 && dtype != DType::f16 && dtype != DType::bf16 &&
      dtype != DType::f32)
    refuse_spec(
        fmt::format("sample dtype is {}: it must be u8, u16, f16, bf16 or f32", shard::to_string(dtype)));
  if (axes != decltype(axes){})
    refuse_spec("a sample that is an image has axes: only those of layout tensor do");
  check_range("channels", channels, kMaxSampleChannels);
  if (is_free()) return;
  check_range("height", height, kMaxSide);
  check_range("width", width, kMaxSide);
  if (size_bytes() > kMaxSampleBytes)
    refuse_spec(fmt::format("a sample of {} channels, {} rows and {} columns has {} bytes: at most {}",
                            channels, height, width, size_bytes(), kMaxSampleBytes));
}

SampleSpec SampleSpec::sized(std::uint32_t rows, std::uint32_t columns) const noexcept {
  SampleSpec spec = *this;
  spec.height = rows;
  spec.width = columns;
  return spec;
}

void LargestSample::include(const LargestSample& other) noexcept {
  height = std::max(height, other.height);
  width = std::max(width, other.width);
  sample_bytes = std::max(sample_bytes, other.sample_bytes);
  frame_bytes = std::max(frame_bytes, other.frame_bytes);
}

SampleSpec tensor_spec(DType dtype, std::span<const std::uint64_t> axes) {
  if (dtype > DType::f64) refuse_spec("the dtype of a tensor is not known");
  if (axes.empty() || axes.size() > kMaxTensorAxes)
    refuse_spec(fmt::format("a sample with {} axes: a tensor has 1 to {}", axes.size(), kMaxTensorAxes));
  SampleSpec spec{dtype, Layout::tensor, 1, 1, 1};
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 1 || axes[i] > kMaxTensorElements || elements * axes[i] > kMaxTensorElements)
      refuse_spec(
          fmt::format("a sample of [{}] elements: each axis must be at least 1, and their product at most {}",
                      fmt::join(axes, ", "), kMaxTensorElements));
    elements *= axes[i];
    spec.axes[i] = static_cast<std::uint32_t>(axes[i]);
  }
  spec.width = static_cast<std::uint32_t>(elements);
  return spec;
}

SampleSpec spec_of_shape(DType dtype, Layout layout, std::span<const std::uint64_t> shape) {
  if (layout == Layout::tensor) return tensor_spec(dtype, shape);
  if (shape.size() != 3)
    refuse_spec(fmt::format("a sample with {} axes: layout {} has 3", shape.size(), to_string(layout)));
  const auto axis = [&](std::size_t i) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(shape[i], 0xffffffffU));
  };
  const bool nchw = layout == Layout::nchw;
  SampleSpec spec{dtype, layout, axis(nchw ? 0 : 2), axis(nchw ? 1 : 0), axis(nchw ? 2 : 1)};
  spec.check();
  return spec;
}

}  // namespace shard
