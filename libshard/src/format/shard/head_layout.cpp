#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.hpp"
#include "format/shard/shard_profile.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

// `largest`: ShardContents::largest.
std::map<std::string, std::string> make_metadata(const ShardWriterOptions& options,
                                                 std::span<const LargestSample> largest) {
  std::map<std::string, std::string> metadata{
      {std::string(kProfileKey), fmt::to_string(needed_version(options).version)},
      {std::string(kHeadDigestKey), std::string(kDigestDigits, '0')},
      {"codec", to_string(options.codec)},
      {"dtype", std::string(to_string(options.spec.dtype))},
      {"fingerprint", options.fingerprint},
      {"layout", std::string(to_string(options.spec.layout))},
      {"mean", floats_to_text(options.normalization.mean)},
      {"shape", fmt::format("{}", fmt::join(options.spec.shape(), ","))},
      {"std", floats_to_text(options.normalization.std)},
  };
  if (options.spec.is_free()) metadata.emplace(kLargestKey, largest_to_text(largest.front()));
  for (const auto& [key, value] : options.provenance)
    metadata.emplace(std::string(kPipelinePrefix) + key, value);
  for (const ColumnSpec& column : options.columns)
    if (column.kind != ColumnKind::fixed)
      metadata.emplace(std::string(kFieldPrefix) + column.name, std::string(to_string(column.kind)));
  for (std::size_t i = 0; i < options.fields.size(); ++i) {
    const FieldSpec& field = options.fields[i];
    metadata.emplace(std::string(kFieldPrefix) + field.name, std::string(to_string(field.role)));
    const auto add = [&](std::string_view what, std::string value) {
      metadata.emplace(fmt::format("{}{}.{}", kImagePrefix, field.name, what), std::move(value));
    };
    add("codec", to_string(field.codec));
    add("dtype", std::string(to_string(field.spec.dtype)));
    add("layout", std::string(to_string(field.spec.layout)));
    add("mean", floats_to_text(field.normalization.mean));
    add("shape", fmt::format("{}", fmt::join(field.spec.shape(), ",")));
    add("std", floats_to_text(field.normalization.std));
    if (field.spec.is_free()) add(kLargestKey, largest_to_text(largest[i + 1]));
  }
  return metadata;
}

// Everything but keys and images: 8-byte elements first, so that each tensor is aligned to its elements.
// Columns keep their order inside an element size, I64 labels stand first.
std::vector<TensorInfo> small_tensors(const ShardWriterOptions& options, std::uint64_t samples,
                                      std::span<const std::uint64_t> rows) {
  std::vector<TensorInfo> tensors;
  const auto add = [&](std::string name, DType dtype, std::vector<std::uint64_t> shape) {
    tensors.push_back({std::move(name), dtype, std::move(shape), 0, 0});
  };
  const auto add_column = [&](std::size_t i) {
    const ColumnSpec& column = options.columns[i];
    std::vector<std::uint64_t> shape{column.kind == ColumnKind::fixed ? samples : rows[i]};
    shape.insert(shape.end(), column.row_shape.begin(), column.row_shape.end());
    add(column.name, column.dtype, std::move(shape));
  };
  const bool labels_first = options.columns.front().dtype == DType::i64;
  if (labels_first) add_column(0);
  add("checksums", DType::u64, {samples});
  add("key_offsets", DType::u64, {samples + 1});
  if (options.codec.framed(options.spec)) {
    add("frame_offsets", DType::u64, {samples + 1});
    add("frame_checksums", DType::u64, {samples});
  }
  for (const FieldSpec& field : options.fields) {
    add(field_tensor(field, "checksums"), DType::u64, {samples});
    if (!field.codec.framed(field.spec)) continue;
    add(field_tensor(field, "frame_offsets"), DType::u64, {samples + 1});
    add(field_tensor(field, "frame_checksums"), DType::u64, {samples});
  }
  for (const ColumnSpec& column : options.columns)
    if (column.kind != ColumnKind::fixed) add(offsets_name(column), DType::u64, {samples + 1});
  for (std::size_t element : {8U, 4U, 2U, 1U}) {
    if (element == 4) {
      if (options.spec.is_free()) add(std::string(kShapes), DType::u32, {samples, 2});
      for (const FieldSpec& field : options.fields)
        if (field.spec.is_free()) add(field_tensor(field, kShapes), DType::u32, {samples, 2});
      if (options.codec.kind == CodecSpec::Kind::jpeg) add(std::string(kJpegFiles), DType::u32, {samples, 4});
      for (const FieldSpec& field : options.fields)
        if (field.codec.kind == CodecSpec::Kind::jpeg)
          add(field_tensor(field, kJpegFiles), DType::u32, {samples, 4});
    }
    for (std::size_t i = labels_first ? 1 : 0; i < options.columns.size(); ++i) {
      if (size_bytes(options.columns[i].dtype) == element) add_column(i);
    }
  }
  return tensors;
}

[[noreturn]] void too_large(std::uint64_t samples) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a shard of {} samples is too large: its head (labels, keys, ...) may take {} "
                          "bytes, its JSON header {}; "
                          "put fewer samples into a shard",
                          samples, kMaxHeadBytes, kMaxShardHeaderBytes));
}

// The rows or frames of the main image, or of a further field.
TensorInfo image_tensor(std::string name, const SampleSpec& spec, const CodecSpec& codec,
                        std::uint64_t samples, std::uint64_t bytes) {
  if (codec.framed(spec)) return {std::move(name), DType::u8, {bytes}, 0, bytes};
  TensorInfo images{std::move(name), spec.dtype, {samples}, 0, bytes};
  for (const std::uint32_t axis : spec.shape()) images.shape.push_back(axis);
  return images;
}

// The images of further fields, each with what fills it up to the next multiple of kImagesAlignment,
// and the main ones. `images_bytes`: ShardContents::images_bytes.
std::vector<TensorInfo> image_tensors(const ShardWriterOptions& options, std::uint64_t samples,
                                      std::span<const std::uint64_t> images_bytes) {
  std::vector<TensorInfo> tensors;
  for (std::size_t i = 0; i < options.fields.size(); ++i) {
    const FieldSpec& field = options.fields[i];
    tensors.push_back(
        image_tensor(field_images(field), field.spec, field.codec, samples, images_bytes[i + 1]));
    const std::uint64_t padding = round_up(images_bytes[i + 1], kImagesAlignment) - images_bytes[i + 1];
    tensors.push_back({field_tensor(field, "padding"), DType::u8, {padding}, 0, padding});
  }
  tensors.push_back(image_tensor(options.codec.framed(options.spec) ? "image_frames" : "images", options.spec,
                                 options.codec, samples, images_bytes.front()));
  return tensors;
}

// Sets begin and end of the tensors, one after the other. Returns the end of the last one.
std::uint64_t set_offsets(std::vector<TensorInfo>& tensors, std::uint64_t samples) {
  std::uint64_t end = 0;
  for (TensorInfo& tensor : tensors) {
    std::optional<std::uint64_t> bytes = size_bytes(tensor.dtype);
    for (std::uint64_t axis : tensor.shape) {
      if (bytes) bytes = checked_mul(*bytes, axis);
    }
    if (!bytes || *bytes > kMaxHeadBytes || end > kMaxHeadBytes) too_large(samples);
    tensor.begin = end;
    tensor.end = end += *bytes;
  }
  return end;
}

std::uint64_t row_bytes(const TensorInfo& tensor) {
  std::uint64_t bytes = size_bytes(tensor.dtype);
  for (std::size_t axis = 1; axis < tensor.shape.size(); ++axis) bytes *= tensor.shape[axis];
  return bytes;
}

}  // namespace

std::uint64_t head_bytes_per_sample(const DatasetSpec& spec) {
  const ShardWriterOptions options{spec};
  // One sample, without rows of the columns that are not fixed: then these tensors are empty.
  std::uint64_t bytes = 0;
  for (const TensorInfo& tensor : small_tensors(options, 1, std::vector<std::uint64_t>(spec.columns.size())))
    if (tensor.shape.front() != 0) bytes += row_bytes(tensor);
  return bytes;
}

void check_header_bytes(const ShardWriterOptions& options) {
  SafetensorsHeader table;
  const LargestSample longest_numbers{kMaxSide, kMaxSide, kMaxSampleBytes, kMaxSampleBytes};
  table.metadata = make_metadata(options, std::vector(options.fields.size() + 1, longest_numbers));
  table.tensors = small_tensors(options, 1, std::vector<std::uint64_t>(options.columns.size()));
  const std::vector<std::uint64_t> none(options.fields.size() + 1);
  table.tensors.push_back({"keys", DType::u8, {0}, 0, 0});
  for (TensorInfo& images : image_tensors(options, 1, none)) table.tensors.push_back(std::move(images));
  constexpr std::uint64_t kMoreDigits = 64;  // of a tensor's counts and offsets in a larger shard
  std::uint64_t bytes = serialize_safetensors_header(table).size() + table.tensors.size() * kMoreDigits;
  if (bytes <= kMaxShardHeaderBytes) return;
  const auto longest =
      std::max_element(table.metadata.begin(), table.metadata.end(),
                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the header of a shard has at most {} bytes of JSON, and this needs {}: names of "
                          "columns and fields, and what is recorded of the source; the longest is {} with {} "
                          "bytes",
                          kMaxShardHeaderBytes, bytes, longest->first, longest->second.size()));
}

std::uint64_t HeadLayout::file_begin(std::string_view tensor) const {
  return table.data_begin + table.find(tensor)->begin;
}

HeadLayout lay_out_head(const ShardWriterOptions& options, const ShardContents& contents) {
  const std::uint64_t samples = contents.samples;
  const std::uint64_t key_bytes = contents.key_bytes;
  HeadLayout layout;
  std::vector<TensorInfo>& tensors = layout.table.tensors;
  layout.table.metadata = make_metadata(options, contents.largest);
  tensors = small_tensors(options, samples, contents.rows);
  const std::uint64_t keys_begin = set_offsets(tensors, samples);
  if (key_bytes > kMaxHeadBytes) too_large(samples);
  const std::size_t keys_at = tensors.size();
  tensors.push_back({"keys", DType::u8, {0}, keys_begin, keys_begin});
  for (TensorInfo& images : image_tensors(options, samples, contents.images_bytes))
    tensors.push_back(std::move(images));

  // The padding of `keys` depends on the header's length, which depends on the digits of the padding. The
  // length only grows from round to round, so this ends, and the outcome is a function of the arguments.
  std::size_t text_bytes = 0;
  std::uint64_t keys_end = 0;
  for (;;) {
    keys_end = round_up(text_bytes + keys_begin + key_bytes, kImagesAlignment) - text_bytes;
    tensors[keys_at].end = keys_end;
    tensors[keys_at].shape = {keys_end - keys_begin};
    for (std::size_t i = keys_at + 1; i < tensors.size(); ++i) {
      const std::uint64_t bytes = tensors[i].size_bytes();
      tensors[i].begin = tensors[i - 1].end;
      tensors[i].end = tensors[i].begin + bytes;
    }
    layout.text = serialize_safetensors_header(layout.table);
    if (layout.text.size() <= text_bytes) break;
    text_bytes = layout.text.size();
  }
  if (layout.text.size() < text_bytes) {  // a digit less in the last round: more spaces
    layout.text.resize(text_bytes, ' ');
    store_u64({reinterpret_cast<std::byte*>(layout.text.data()), 8}, 0, text_bytes - 8);
  }
  layout.table.data_begin = text_bytes;
  layout.head_end = text_bytes + keys_end;
  layout.images_begin = text_bytes + tensors.back().begin;
  if (text_bytes - 8 > kMaxShardHeaderBytes || layout.head_end > kMaxHeadBytes) too_large(samples);
  return layout;
}

}  // namespace shard
