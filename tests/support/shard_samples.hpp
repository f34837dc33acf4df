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

// Sample `index`: bytes that differ between samples and positions, half of them compressible.
inline std::vector<std::byte> sample_bytes(const SampleSpec& spec, std::uint64_t index) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.size_bytes()));
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

// The rows of all columns of sample `index`: little-endian counters.
inline std::vector<std::byte> column_bytes(const std::vector<ColumnSpec>& columns, std::uint64_t index) {
  std::vector<std::byte> bytes;
  for (const ColumnSpec& column : columns) {
    std::uint64_t elements = 1;
    for (std::uint64_t axis : column.row_shape) elements *= axis;
    for (std::uint64_t e = 0; e < elements; ++e) {
      for (std::size_t b = 0; b < size_bytes(column.dtype); ++b) {
        bytes.push_back(static_cast<std::byte>(b == 0 ? index + e : 0));
      }
    }
  }
  return bytes;
}

inline void put_sample(ShardWriter& writer, const ShardWriterOptions& options, std::uint64_t index) {
  writer.put(index, sample_key(index), column_bytes(options.columns, index),
             sample_bytes(options.spec, index));
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
