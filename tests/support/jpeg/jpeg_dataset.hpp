// Small data sets of codec jpeg, and the same samples, decoded, with codec none.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/digest/checksum.hpp"
#include "shard/codec.hpp"
#include "shard/jpeg_frame.hpp"
#include "support/jpeg/jpeg_decoding.hpp"
#include "support/loader/loader_fixture.hpp"

namespace shard::testing {

struct JpegShape {
  std::vector<std::uint64_t> shards{23, 17};
  bool free = true;  // else all samples are 44 x 60, and each third is encoded by the writer
  std::uint32_t channels = 3;
  bool camera = false;  // beside the images, another field of codec jpeg
};

inline SampleSpec spec_of(const JpegShape& shape) {
  return {DType::u8, Layout::nhwc, shape.channels, shape.free ? 0U : 44U, shape.free ? 0U : 60U};
}

// Rows and columns of sample `index`: thumbnails, and each seventh a large one.
inline SampleSize jpeg_size(const JpegShape& shape, std::uint64_t index) {
  if (!shape.free) return {44, 60};
  const auto i = static_cast<std::uint32_t>(index);
  if (i % 7 == 3) return {90 + i, 180 + 3 * i};
  return {1 + i * 13 % 40, 1 + i * 29 % 50};
}

// Of any kind that libjpeg-turbo's encoder makes and frames hold, and turned in all ways.
inline JpegFrame jpeg_frame(const JpegShape& shape, std::uint64_t index, std::uint64_t part) {
  std::mt19937_64 random(1000 * part + index);
  const auto orientation = static_cast<std::uint32_t>(1 + (index / 2 + part) % 8);
  const SampleSize size = jpeg_size(shape, index);
  JpegOptions options = random_options(random, 60);
  options.width = orientation >= 5 ? size.height : size.width;
  options.height = orientation >= 5 ? size.width : size.height;
  if (shape.channels == 1) options.components = 1;
  return make_jpeg_frame(random_file(random, options), orientation);
}

inline std::vector<std::byte> decoded_frame(const JpegShape& shape, const JpegFrame& frame) {
  SampleSpec spec = spec_of(shape);
  if (spec.is_free()) spec = spec.sized(frame.file.upright_height(), frame.file.upright_width());
  std::vector<std::byte> pixels(spec.size_bytes());
  Codec(CodecSpec(CodecSpec::Kind::jpeg), spec).decode(frame.bytes, pixels, FrameSpec(spec, frame.file));
  return pixels;
}

inline DatasetInfo info_of(const JpegShape& shape, const CodecSpec& codec) {
  DatasetInfo info;
  info.spec = spec_of(shape);
  info.normalization = kNormalization;
  info.codec = codec;
  if (shape.camera) info.fields = {{"camera", FieldRole::image, info.spec, kNormalization, codec}};
  info.fingerprint = info.source_digest = "0123456789abcdef";
  return info;
}

// Label of sample i: 1000 + i.
template <class Values>
void write_shards(const std::filesystem::path& folder, const JpegShape& shape, DatasetInfo info,
                  const Values& values) {
  std::filesystem::create_directories(folder);
  const ShardWriterOptions options{info};
  std::uint64_t index = 0;
  for (const std::uint64_t count : shape.shards) {
    ShardWriter writer = ShardWriter::create(
        folder / ("shard-" + std::to_string(info.shards.size()) + ".safetensors"), count, options);
    for (std::uint64_t i = 0; i < count; ++i, ++index) {
      const std::uint64_t label = 1000 + index;
      std::vector<std::byte> row(8);
      std::memcpy(row.data(), &label, 8);
      const std::vector<std::span<const std::byte>> rows{row};
      values(index, [&](const SampleValues& sample, std::span<const SampleValues> fields) {
        writer.put(i, "k" + std::to_string(index), rows, sample, fields);
      });
    }
    info.shards.push_back(writer.publish());
  }
  info.inputs = index;
  publish_file(folder / kDatasetFile, serialize_dataset(info));
}

inline void write_jpeg_dataset(const std::filesystem::path& folder, const JpegShape& shape) {
  write_shards(folder, shape, info_of(shape, CodecSpec(CodecSpec::Kind::jpeg)),
               [&](std::uint64_t index, const auto& put) {
                 const JpegFrame frame = jpeg_frame(shape, index, 0);
                 const std::vector<std::byte> pixels = decoded_frame(shape, frame);
                 SampleValues sample(frame, xxh3(pixels));
                 if (!shape.free && index % 3 == 1) sample = SampleValues(pixels);
                 if (!shape.camera) return put(sample, {});
                 const JpegFrame other = jpeg_frame(shape, index, 1);
                 const SampleValues camera(other, xxh3(decoded_frame(shape, other)));
                 put(sample, {&camera, 1});
               });
}

// What the samples of that data set decode to.
inline void write_decoded_dataset(const std::filesystem::path& folder, const JpegShape& shape,
                                  const Dataset& jpeg) {
  write_shards(folder, shape, info_of(shape, {}), [&](std::uint64_t index, const auto& put) {
    const Dataset::Location at = jpeg.locate(index);
    const ShardReader& shard = jpeg.shard(at.shard);
    const auto read = [&](const StoredImages& images, std::vector<std::byte>& pixels) {
      const SampleSpec spec = images.spec_of(at.sample);
      pixels.resize(spec.size_bytes());
      images.read(at.sample, pixels);
      return SampleValues(pixels, spec.height, spec.width);
    };
    std::vector<std::byte> pixels;
    std::vector<std::byte> others;
    const SampleValues sample = read(shard.images(), pixels);
    if (!shape.camera) return put(sample, {});
    const SampleValues camera = read(shard.images(0), others);
    put(sample, {&camera, 1});
  });
}

}  // namespace shard::testing
