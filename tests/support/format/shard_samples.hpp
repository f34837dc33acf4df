// Small shards with known content, for tests of the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "shard/keys.hpp"
#include "shard/shard_reader.hpp"
#include "shard/shard_writer.hpp"

namespace shard::testing {

inline ShardWriterOptions small_options(DType dtype = DType::u8, Layout layout = Layout::nchw,
                                        CodecSpec codec = {}) {
  ShardWriterOptions options;
  options.spec = {dtype, layout, 3, 4, 5};
  options.normalization = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  options.provenance = {{"filter", "bilinear"}, {"resize", "4"}};
  options.codec = codec;
  options.fingerprint = "0123456789abcdef";
  return options;
}

// What sample `index` is: of samples of any size 3 to 7 rows and 2 to 12 columns.
inline SampleSpec sized_spec(const SampleSpec& spec, std::uint64_t index) {
  if (!spec.is_free()) return spec;
  return spec.sized(static_cast<std::uint32_t>(3 + index * 3 % 5),
                    static_cast<std::uint32_t>(2 + index * 7 % 11));
}

// Sample `index`: bytes that differ between samples and positions, half of them compressible.
inline std::vector<std::byte> sample_bytes(const SampleSpec& spec, std::uint64_t index) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(sized_spec(spec, index).size_bytes()));
  std::uint64_t state = index * 0x9e3779b97f4a7c15U + 1;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    bytes[i] = i % 2 == 0 ? static_cast<std::byte>(index) : static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

inline std::string sample_key(std::uint64_t index) {
  return "class/photo " + std::to_string(index * index) + ".jpg";
}

// How many rows a ragged column of sample `index` has: 0 to 2.
inline std::uint64_t ragged_rows(std::uint64_t index) { return (index + 1) % 3; }

// Two bytes of a character, `index` times; so some texts are empty.
inline std::string sample_text(std::uint64_t index) {
  std::string text;
  for (std::uint64_t i = 0; i < index % 5; ++i) text += "\xc3\xbc";
  return text;
}

// What each column has for sample `index`: little-endian counters, and text.
inline std::vector<std::vector<std::byte>> column_rows(const std::vector<ColumnSpec>& columns,
                                                       std::uint64_t index) {
  std::vector<std::vector<std::byte>> all;
  for (const ColumnSpec& column : columns) {
    std::vector<std::byte>& bytes = all.emplace_back();
    if (column.kind == ColumnKind::text) {
      for (const char c : sample_text(index)) bytes.push_back(static_cast<std::byte>(c));
      continue;
    }
    const std::uint64_t rows = column.kind == ColumnKind::ragged ? ragged_rows(index) : 1;
    const std::uint64_t elements = rows * column.row_bytes() / size_bytes(column.dtype);
    for (std::uint64_t e = 0; e < elements; ++e) {
      for (std::size_t b = 0; b < size_bytes(column.dtype); ++b) {
        bytes.push_back(static_cast<std::byte>(b == 0 ? index + e : 0));
      }
    }
  }
  return all;
}

// The same, one after the other.
inline std::vector<std::byte> column_bytes(const std::vector<ColumnSpec>& columns, std::uint64_t index) {
  std::vector<std::byte> bytes;
  for (const std::vector<std::byte>& rows : column_rows(columns, index))
    bytes.insert(bytes.end(), rows.begin(), rows.end());
  return bytes;
}

// What a reader finds of that.
inline std::vector<std::byte> read_columns(const ShardReader& reader, const std::vector<ColumnSpec>& columns,
                                           std::uint64_t sample) {
  std::vector<std::byte> bytes;
  std::vector<std::byte> rows;
  for (const ColumnSpec& column : columns) {
    reader.read_column(reader.column(column.name), sample, rows);
    bytes.insert(bytes.end(), rows.begin(), rows.end());
  }
  return bytes;
}

// The sample of further image field `field` is that of this index.
inline std::uint64_t field_index(std::size_t field, std::uint64_t index) { return index + 50 * (field + 1); }
inline std::vector<std::byte> field_bytes(const std::vector<FieldSpec>& fields, std::size_t field,
                                          std::uint64_t index) {
  return sample_bytes(fields[field].spec, field_index(field, index));
}

// `bytes`, which are those of sample `index`.
inline SampleValues sample_values(const SampleSpec& spec, std::uint64_t index,
                                  std::span<const std::byte> bytes) {
  const SampleSpec of = sized_spec(spec, index);
  return {bytes, of.height, of.width};
}

inline void put_sample(ShardWriter& writer, const ShardWriterOptions& options, std::uint64_t index) {
  const auto rows = column_rows(options.columns, index);
  const std::vector<std::span<const std::byte>> views(rows.begin(), rows.end());
  std::vector<std::vector<std::byte>> fields;
  for (std::size_t f = 0; f < options.fields.size(); ++f)
    fields.push_back(field_bytes(options.fields, f, index));
  std::vector<SampleValues> field_views;
  for (std::size_t f = 0; f < fields.size(); ++f)
    field_views.push_back(sample_values(options.fields[f].spec, field_index(f, index), fields[f]));
  const std::vector<std::byte> sample = sample_bytes(options.spec, index);
  writer.put(index, sample_key(index), views, sample_values(options.spec, index, sample), field_views);
}

inline ShardSummary write_shard(const std::filesystem::path& path, const ShardWriterOptions& options,
                                std::uint64_t samples) {
  ShardWriter writer = ShardWriter::create(path, samples, options);
  for (std::uint64_t i = 0; i < samples; ++i) put_sample(writer, options, i);
  return writer.publish();
}

inline std::vector<std::byte> file_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> chars{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto* const first = reinterpret_cast<const std::byte*>(chars.data());
  return {first, first + chars.size()};
}

inline void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// Everything a reader can check. Throws shard::Error.
inline void verify_shard(const ShardReader& reader) {
  std::vector<std::byte> scratch;
  reader.verify_head();
  for (std::uint64_t i = 0; i < reader.size(); ++i) reader.verify_sample(i, scratch);
}

}  // namespace shard::testing
