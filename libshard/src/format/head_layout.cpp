#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.hpp"
#include "format/shard_profile.hpp"
#include "shard/error.hpp"

namespace shard {
namespace {

std::map<std::string, std::string> make_metadata(const ShardWriterOptions& options) {
  std::map<std::string, std::string> metadata{
      {std::string(kProfileKey), fmt::to_string(profile_version(options))},
      {std::string(kHeadDigestKey), std::string(kDigestDigits, '0')},
      {"codec", to_string(options.codec)},
      {"dtype", std::string(to_string(options.spec.dtype))},
      {"fingerprint", options.fingerprint},
      {"layout", std::string(to_string(options.spec.layout))},
      {"mean", floats_to_text(options.normalization.mean)},
      {"shape", fmt::format("{}", fmt::join(options.spec.shape(), ","))},
      {"std", floats_to_text(options.normalization.std)},
  };
  for (const auto& [key, value] : options.provenance)
    metadata.emplace(std::string(kPipelinePrefix) + key, value);
  for (const ColumnSpec& column : options.columns)
    if (column.kind != ColumnKind::fixed)
      metadata.emplace(std::string(kFieldPrefix) + column.name, std::string(to_string(column.kind)));
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
  if (options.codec.kind != CodecSpec::Kind::none) {
    add("frame_offsets", DType::u64, {samples + 1});
    add("frame_checksums", DType::u64, {samples});
  }
  for (const ColumnSpec& column : options.columns)
    if (column.kind != ColumnKind::fixed) add(offsets_name(column), DType::u64, {samples + 1});
  for (std::size_t element : {8U, 4U, 2U, 1U}) {
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

}  // namespace

std::uint64_t HeadLayout::file_begin(std::string_view tensor) const {
  return table.data_begin + table.find(tensor)->begin;
}

HeadLayout lay_out_head(const ShardWriterOptions& options, std::uint64_t samples,
                        std::span<const std::uint64_t> rows, std::uint64_t key_bytes,
                        std::uint64_t images_bytes) {
  HeadLayout layout;
  layout.table.metadata = make_metadata(options);
  layout.table.tensors = small_tensors(options, samples, rows);
  const std::uint64_t keys_begin = set_offsets(layout.table.tensors, samples);
  if (key_bytes > kMaxHeadBytes) too_large(samples);

  TensorInfo images{"images", options.spec.dtype, {samples}, 0, 0};
  for (const std::uint32_t axis : options.spec.shape()) images.shape.push_back(axis);
  if (options.codec.kind != CodecSpec::Kind::none) images = {"image_frames", DType::u8, {images_bytes}, 0, 0};
  layout.table.tensors.push_back({"keys", DType::u8, {0}, keys_begin, keys_begin});
  layout.table.tensors.push_back(std::move(images));

  // The padding of `keys` depends on the header's length, which depends on the digits of the padding. The
  // length only grows from round to round, so this ends, and the outcome is a function of the arguments.
  std::size_t text_bytes = 0;
  for (;;) {
    const std::uint64_t keys_end =
        round_up(text_bytes + keys_begin + key_bytes, kImagesAlignment) - text_bytes;
    TensorInfo& keys = layout.table.tensors[layout.table.tensors.size() - 2];
    TensorInfo& last = layout.table.tensors.back();
    keys.end = keys_end;
    keys.shape = {keys_end - keys_begin};
    last.begin = keys_end;
    last.end = keys_end + images_bytes;
    layout.text = serialize_safetensors_header(layout.table);
    if (layout.text.size() <= text_bytes) break;
    text_bytes = layout.text.size();
  }
  if (layout.text.size() < text_bytes) {  // a digit less in the last round: more spaces
    layout.text.resize(text_bytes, ' ');
    store_u64({reinterpret_cast<std::byte*>(layout.text.data()), 8}, 0, text_bytes - 8);
  }
  layout.table.data_begin = text_bytes;
  layout.images_begin = text_bytes + layout.table.tensors.back().begin;
  if (text_bytes - 8 > kMaxShardHeaderBytes || layout.images_begin > kMaxHeadBytes) too_large(samples);
  return layout;
}

}  // namespace shard
