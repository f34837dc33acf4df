#include "shardctl/dataset/labels.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <concepts>
#include <vector>

#include "shard/dtype.hpp"

namespace shard::ctl {
namespace {

std::uint64_t load_little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

const Column* labels_of(const ShardReader& reader) {
  const auto found = reader.columns().find("labels");
  return found == reader.columns().end() ? nullptr : &found->second;
}

}  // namespace

std::string element_text(DType dtype, std::span<const std::byte> bytes, std::uint64_t index) {
  const std::size_t size = size_bytes(dtype);
  const std::uint64_t bits = load_little_endian(bytes.subspan(index * size, size));
  switch (dtype) {
    case DType::boolean:
      return bits != 0 ? "true" : "false";
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
      return fmt::format("{}", bits);
    case DType::i8:
      return fmt::format("{}", static_cast<int>(static_cast<std::int8_t>(bits)));
    case DType::i16:
      return fmt::format("{}", static_cast<std::int16_t>(bits));
    case DType::i32:
      return fmt::format("{}", static_cast<std::int32_t>(bits));
    case DType::i64:
      return fmt::format("{}", static_cast<std::int64_t>(bits));
    case DType::f16:
      return fmt::format("{}", f16_to_f32(static_cast<std::uint16_t>(bits)));
    case DType::bf16:
      return fmt::format("{}", bf16_to_f32(static_cast<std::uint16_t>(bits)));
    case DType::f32:
      return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case DType::f64:
      return fmt::format("{}", std::bit_cast<double>(bits));
  }
  return "?";
}

std::optional<std::int64_t> class_id(const ShardReader& reader, std::uint64_t sample) {
  const Column* labels = labels_of(reader);
  if (labels == nullptr || labels->dtype != DType::i64 || !labels->row_shape.empty()) return std::nullopt;
  return reader.label(sample);
}

std::string label_row_text(const ShardReader& reader, std::uint64_t sample, char separator) {
  const Column* labels = labels_of(reader);
  if (labels == nullptr) return {};
  std::vector<std::byte> row(labels->row_bytes);
  reader.read_rows(*labels, sample, row);
  const std::uint64_t elements = labels->row_bytes / size_bytes(labels->dtype);
  std::string text;
  for (std::uint64_t i = 0; i < elements; ++i) {
    if (i > 0) text += separator;
    text += element_text(labels->dtype, row, i);
  }
  return text;
}

std::string column_text(const ShardReader& reader, const Column& column, std::uint64_t sample) {
  if (column.kind == ColumnKind::text) return reader.text(column, sample);
  std::vector<std::byte> rows;
  reader.read_column(column, sample, rows);
  std::string text;
  for (std::uint64_t i = 0; i < rows.size() / size_bytes(column.dtype); ++i)
    text += (i > 0 ? " " : "") + element_text(column.dtype, rows, i);
  return text;
}

std::string label_name(const Source& source, const ShardReader& reader, std::uint64_t sample) {
  const auto id = class_id(reader, sample);
  const auto& classes = source.info().classes;
  if (id && *id >= 0 && static_cast<std::uint64_t>(*id) < classes.size())
    return classes[static_cast<std::size_t>(*id)];
  return label_row_text(reader, sample, ',');
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace shard::ctl
