#include "format/shard/shard_profile.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "base/text/number.hpp"
#include "base/text/quote.hpp"
#include "base/text/utf8.hpp"
#include "format/codec/codec_check.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

constexpr std::array<std::string_view, 8> kReserved{"__metadata__",  "checksums",      "key_offsets",
                                                    "keys",          "images",         "image_frames",
                                                    "frame_offsets", "frame_checksums"};

[[noreturn]] void refuse_profile(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

}  // namespace

std::optional<std::size_t> find_digest_digits(std::string_view json) noexcept {
  constexpr std::string_view kBefore = "\"head_digest\":\"";
  const auto at = json.find(kBefore);
  if (at == std::string_view::npos || json.find(kBefore, at + 1) != std::string_view::npos)
    return std::nullopt;
  const std::size_t digits_at = at + kBefore.size();
  if (json.size() <= digits_at + kDigestDigits || json[digits_at + kDigestDigits] != '"') return std::nullopt;
  if (!from_hex(json.substr(digits_at, kDigestDigits))) return std::nullopt;
  return digits_at;
}

std::uint64_t digest_head(std::span<const std::byte> head, std::size_t digits_at) {
  Xxh3Stream stream;
  stream.update(head.first(digits_at));
  stream.update(std::string_view("0000000000000000"));
  stream.update(head.subspan(digits_at + kDigestDigits));
  return stream.digest();
}

bool is_reserved_tensor(std::string_view name) noexcept {
  return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
}

std::string floats_to_text(std::span<const float> values) {
  return fmt::format("{}", fmt::join(values, ","));
}

std::optional<float> float_from_text(std::string_view text) noexcept {
  const auto value = number_of<float>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::vector<float>> floats_from_text(std::string_view text) {
  std::vector<float> values;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::optional<float> value = float_from_text(text.substr(0, comma));
    if (!value || values.size() == kMaxSampleChannels) return std::nullopt;
    values.push_back(*value);
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

std::string largest_to_text(const LargestSample& largest) {
  return fmt::format("{},{},{},{}", largest.height, largest.width, largest.sample_bytes, largest.frame_bytes);
}

std::optional<LargestSample> largest_from_text(std::string_view text) noexcept {
  std::array<std::uint64_t, 4> numbers{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::uint64_t& number : numbers) {
    if (&number != numbers.data() && (at == end || *at++ != ',')) return std::nullopt;
    const auto [next, status] = std::from_chars(at, end, number);
    if (status != std::errc{}) return std::nullopt;
    at = next;
  }
  if (at != end || std::max(numbers[0], numbers[1]) > kMaxSide) return std::nullopt;
  return LargestSample{static_cast<std::uint32_t>(numbers[0]), static_cast<std::uint32_t>(numbers[1]),
                       numbers[2], numbers[3]};
}

void check_provenance(const Provenance& pipeline) {
  for (const auto& [key, value] : pipeline) {
    if (key.empty() || key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != std::string::npos) {
      refuse_profile(fmt::format("pipeline key {}: only a to z and _ are allowed", quoted(key)));
    }
    if (!is_utf8(value)) refuse_profile(fmt::format("pipeline value of {} is not valid UTF-8", key));
  }
}

void check_columns(const std::vector<ColumnSpec>& columns) {
  constexpr std::uint64_t kMaxRowBytes = std::uint64_t{1} << 30;
  std::set<std::string_view> names;
  for (const ColumnSpec& column : columns) {
    const std::string name = quoted(column.name);
    if (column.name.empty() || !is_utf8(column.name) || column.name.size() > 255) {
      refuse_profile(fmt::format("column name {}: it must be 1 to 255 bytes of UTF-8", name));
    }
    if (is_reserved_tensor(column.name))
      refuse_profile(fmt::format("column name {} is reserved by the format", name));
    if (!names.insert(column.name).second) refuse_profile(fmt::format("column {} occurs twice", name));
    if (column.row_shape.size() > 8)
      refuse_profile(
          fmt::format("column {} has {} axes per sample: at most 8", name, column.row_shape.size()));
    if (column.kind != ColumnKind::fixed && is_reserved_tensor(offsets_name(column)))
      refuse_profile(fmt::format("column name {} with kind {}: tensor {} is reserved by the format", name,
                                 to_string(column.kind), offsets_name(column)));
    if (column.kind == ColumnKind::text && (column.dtype != DType::u8 || !column.row_shape.empty()))
      refuse_profile(fmt::format("column {} is text, but its elements are {} [{}]: they must be u8 []", name,
                                 to_string(column.dtype), fmt::join(column.row_shape, ", ")));
    std::uint64_t bytes = size_bytes(column.dtype);
    for (std::uint64_t axis : column.row_shape) {
      const auto product = checked_mul(bytes, axis);
      if (!product || *product == 0 || *product > kMaxRowBytes) {
        refuse_profile(
            fmt::format("column {}: a row of {} elements on one axis: a row must have 1 to {} bytes", name,
                        axis, kMaxRowBytes));
      }
      bytes = *product;
    }
  }
  for (const ColumnSpec& column : columns)
    if (column.kind != ColumnKind::fixed && names.contains(offsets_name(column)))
      refuse_profile(fmt::format("column {}: it is the name of the offsets of {}",
                                 quoted(offsets_name(column)), quoted(column.name)));
  if (columns.empty() || columns.front().name != "labels")
    refuse_profile("the first column must be \"labels\"");
  const ColumnSpec& labels = columns.front();
  const bool ids = labels.dtype == DType::i64 && labels.row_shape.empty();
  const bool table = labels.dtype == DType::f32 && labels.row_shape.size() == 1;
  if ((!ids && !table) || labels.kind != ColumnKind::fixed)
    refuse_profile("labels must be i64 [sample] or f32 [sample, value]");
}

void check_fields(const DatasetSpec& spec) {
  const std::vector<FieldSpec>& fields = spec.fields;
  if (fields.size() > kMaxFields)
    refuse_profile(fmt::format("{} further image fields: at most {}", fields.size(), kMaxFields));
  std::set<std::string> tensors(kReserved.begin(), kReserved.end());
  for (const ColumnSpec& column : spec.columns) {
    tensors.insert(column.name);
    if (column.kind != ColumnKind::fixed) tensors.insert(offsets_name(column));
  }
  if (spec.spec.is_free() && !tensors.insert(std::string(kShapes)).second)
    refuse_profile(
        fmt::format("column or offsets {}: the sizes of the images have this name", quoted(kShapes)));
  if (spec.codec.kind == CodecSpec::Kind::jpeg && !tensors.insert(std::string(kJpegFiles)).second)
    refuse_profile(
        fmt::format("column or offsets {}: the files of the images have this name", quoted(kJpegFiles)));
  const auto add = [&](const FieldSpec& field, const std::string& tensor) {
    if (!tensors.insert(tensor).second)
      refuse_profile(fmt::format("field {}: there is another tensor {}", quoted(field.name), quoted(tensor)));
  };
  for (const FieldSpec& field : fields) {
    const std::string name = quoted(field.name);
    if (field.name.empty() || !is_utf8(field.name) || field.name.size() > 200)
      refuse_profile(fmt::format("field name {}: it must be 1 to 200 bytes of UTF-8", name));
    add(field, field.name);
    for (const std::string_view part : {"frames", "checksums", "frame_offsets", "frame_checksums", "padding"})
      add(field, field_tensor(field, part));
    if (field.spec.is_free()) add(field, field_tensor(field, kShapes));
    if (field.codec.kind == CodecSpec::Kind::jpeg) add(field, field_tensor(field, kJpegFiles));
    try {
      field.spec.check();
      check_normalization(field.normalization, field.spec);
      check_codec(field.codec, field.spec);
    } catch (const Error& error) {
      refuse_profile(fmt::format("field {}: {}", name, error.what()));
    }
    if (field.role != FieldRole::mask) continue;
    if (field.codec.kind == CodecSpec::Kind::jpeg)
      refuse_profile(fmt::format("field {} is a mask: codec jpeg would change its class ids", name));
    if ((field.spec.dtype != DType::u8 && field.spec.dtype != DType::u16) || field.spec.channels != 1 ||
        field.spec.is_tensor())
      refuse_profile(
          fmt::format("field {} is a mask of {} with {} channels: class ids are u8 or u16, one channel", name,
                      to_string(field.spec.dtype), field.spec.channels));
    if (!is_identity(field.normalization))
      refuse_profile(fmt::format("field {} is a mask: its mean and std must be 0 and 1", name));
  }
}

void check_writer_options(const ShardWriterOptions& options) {
  options.spec.check();
  check_normalization(options.normalization, options.spec);
  check_codec(options.codec, options.spec);
  check_provenance(options.provenance);
  check_columns(options.columns);
  check_fields(options);
  if (!from_hex(options.fingerprint)) {
    refuse_profile(
        fmt::format("fingerprint {} must be 16 lower-case hexadecimal digits", quoted(options.fingerprint)));
  }
}

NeededVersion needed_version(const DatasetSpec& spec) noexcept {
  if (spec.spec.is_free()) return {3, "samples of any size"};
  for (const FieldSpec& field : spec.fields)
    if (field.spec.is_free()) return {3, "further image fields of any size"};
  if (spec.codec.kind == CodecSpec::Kind::jpeg) return {3, "codec jpeg"};
  for (const FieldSpec& field : spec.fields)
    if (field.codec.kind == CodecSpec::Kind::jpeg) return {3, "further image fields of codec jpeg"};
  if (spec.spec.is_tensor()) return {2, "samples of layout tensor"};
  if (spec.spec.dtype == DType::u16) return {2, "samples of dtype u16"};
  if (spec.spec.channels > 4) return {2, "samples of more than 4 channels"};
  if (spec.normalization.mean.size() != 3) return {2, "a mean and std of more than three channels"};
  for (const ColumnSpec& column : spec.columns)
    if (column.kind != ColumnKind::fixed) return {2, "columns of kind ragged or text"};
  if (!spec.fields.empty()) return {2, "further image fields"};
  return {};
}

std::string offsets_name(const ColumnSpec& column) { return column.name + "_offsets"; }

std::string field_tensor(const FieldSpec& field, std::string_view part) {
  return field.name + '.' + std::string(part);
}

std::string field_images(const FieldSpec& field) {
  return field.codec.framed(field.spec) ? field_tensor(field, "frames") : field.name;
}

void store_jpeg_file(std::span<std::byte> bytes, std::size_t at, const jpeg::FrameFile& file) {
  for (const std::uint32_t number : {file.bytes, file.factors, file.size, file.orientation}) {
    store_u32(bytes, at, number);
    at += 4;
  }
}

jpeg::FrameFile load_jpeg_file(std::span<const std::byte> bytes, std::size_t at) {
  jpeg::FrameFile file;
  file.bytes = load_u32(bytes, at);
  file.factors = load_u32(bytes, at + 4);
  file.size = load_u32(bytes, at + 8);
  file.orientation = load_u32(bytes, at + 12);
  return file;
}

}  // namespace shard
