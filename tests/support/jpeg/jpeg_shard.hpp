// Shards with codec jpeg: files as they are, and pixels that are encoded.
#pragma once

#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/digest/checksum.hpp"
#include "shard/jpeg_frame.hpp"
#include "support/format/shard_samples.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/jpeg/jpeg_samples.hpp"

namespace shard::testing {

// A file and what is stored of it.
struct JpegInput {
  std::vector<std::byte> file;
  std::uint32_t orientation = 1;
  JpegFrame frame;
  std::vector<std::byte> sample;
  SampleValues values() const { return {frame, xxh3(sample)}; }
  SampleSpec spec(std::uint32_t channels = 3) const {
    return jpeg_spec(channels).sized(frame.file.upright_height(), frame.file.upright_width());
  }
};

inline JpegInput jpeg_input(std::vector<std::byte> file, std::uint32_t orientation,
                            std::uint32_t channels = 3) {
  JpegInput input{std::move(file), orientation, {}, {}};
  input.frame = make_jpeg_frame(input.file, orientation);
  input.sample = jpeg_sample(input.file, channels, static_cast<int>(orientation));
  return input;
}

// Input `index`: another kind, size and orientation each.
inline JpegInput jpeg_input(std::uint64_t index, std::uint32_t channels = 3) {
  std::mt19937_64 random(index);
  JpegOptions options = random_options(random, 60);
  if (channels == 1) {
    options.components = 1;
    options.factors = {{1, 1}};
  }
  return jpeg_input(random_file(random, options), static_cast<std::uint32_t>(1 + index % 8), channels);
}

inline ShardWriterOptions jpeg_options(std::uint32_t channels = 3) {
  ShardWriterOptions options = small_options(DType::u8, Layout::nhwc, {CodecSpec::Kind::jpeg});
  options.spec = jpeg_spec(channels);
  return options;
}

inline std::vector<std::byte> jpeg_label(std::uint64_t index) {
  std::vector<std::byte> row(8);
  row[0] = static_cast<std::byte>(index);
  return row;
}

inline void put_jpeg(ShardWriter& writer, std::uint64_t index, const SampleValues& values) {
  writer.put(index, sample_key(index), std::span<const std::byte>(jpeg_label(index)), values);
}

// `samples` of jpeg_input(), of any size.
inline ShardSummary write_jpeg_shard(const std::filesystem::path& path, std::uint64_t samples,
                                     const ShardWriterOptions& options = jpeg_options()) {
  ShardWriter writer = ShardWriter::create(path, samples, options);
  for (std::uint64_t i = 0; i < samples; ++i)
    put_jpeg(writer, i, jpeg_input(i, options.spec.channels).values());
  return writer.publish();
}

}  // namespace shard::testing
