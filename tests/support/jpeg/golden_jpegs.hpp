// The golden shards of codec jpeg: files of tests/golden/images, and of their pixels what Pillow decodes, so
// that no byte depends on a version of libjpeg-turbo.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/digest/checksum.hpp"
#include "shard/jpeg_frame.hpp"
#include "support/format/golden_cases.hpp"

namespace shard::testing {

struct GoldenFile {
  std::string name;  // below tests/golden/images, without ".jpg"
  std::uint32_t orientation = 1;
};

struct GoldenJpegs {
  std::string name;  // file name without ".safetensors"
  ShardWriterOptions options;
  std::vector<GoldenFile> files;        // of the main images; empty: those of sample_bytes()
  std::vector<GoldenFile> field_files;  // of the one further field, if there is any
};

inline std::vector<GoldenJpegs> golden_jpegs() {
  constexpr CodecSpec kJpeg{CodecSpec::Kind::jpeg};
  std::vector<GoldenJpegs> all;
  ShardWriterOptions options = small_options(DType::u8, Layout::nhwc, kJpeg);
  options.spec = {DType::u8, Layout::nhwc, 3, 0, 0};
  all.push_back(
      {"u8-nhwc-3-jpeg-free", options, {{"jpeg_420_33x20"}, {"jpeg_orientation_6", 6}, {"jpeg_ycck_2"}}, {}});
  options.spec.height = 13;
  options.spec.width = 17;
  options.codec.level = 80;
  all.push_back({"u8-nhwc-3-jpeg", options, {{"jpeg_420_17x13"}, {"jpeg_gray"}, {"jpeg_440_17x13"}}, {}});
  options = small_options(DType::u8, Layout::nhwc);
  options.fields = {{"left", FieldRole::image, {DType::u8, Layout::nhwc, 1, 0, 0}, {}, kJpeg}};
  all.push_back(
      {"u8-nhwc-none-jpeg-field", options, {}, {{"jpeg_gray"}, {"jpeg_gray_cjpeg"}, {"jpeg_gray"}}});
  return all;
}

struct GoldenImage {
  std::vector<std::byte> file;
  JpegFrame frame;
  std::vector<std::byte> sample;  // what Pillow makes of it, upright
};

// `tests`: the folder of the tests.
inline GoldenImage golden_image(const std::filesystem::path& tests, const GoldenFile& of,
                                std::uint32_t channels) {
  const std::filesystem::path path = tests / "golden" / "images" / (of.name + ".jpg");
  GoldenImage image;
  image.file = file_bytes(path);
  image.frame = make_jpeg_frame(image.file, of.orientation);
  // "P6\nWIDTH HEIGHT\n255\n", then RGB.
  const std::vector<std::byte> ppm = file_bytes(path.string() + ".ppm");
  const std::size_t rgb = std::size_t{image.frame.file.width()} * image.frame.file.height() * 3;
  for (std::size_t i = ppm.size() - rgb; i < ppm.size(); i += channels == 1 ? 3 : 1)
    image.sample.push_back(ppm[i]);
  return image;
}

// Samples [first, first + count).
inline ShardSummary write_golden_jpegs(const std::filesystem::path& path, const std::filesystem::path& tests,
                                       const GoldenJpegs& of, std::size_t first, std::size_t count) {
  ShardWriter writer = ShardWriter::create(path, count, of.options);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t sample = first + i;
    const auto rows = column_rows(of.options.columns, sample);
    const std::vector<std::span<const std::byte>> views(rows.begin(), rows.end());
    GoldenImage main;
    GoldenImage field;
    main.sample = sample_bytes(of.options.spec, sample);
    SampleValues values(main.sample);
    std::vector<SampleValues> fields;
    if (!of.files.empty()) {
      main = golden_image(tests, of.files[sample], of.options.spec.channels);
      values = {main.frame, xxh3(main.sample)};
    }
    if (!of.field_files.empty()) {
      field = golden_image(tests, of.field_files[sample], of.options.fields.front().spec.channels);
      fields.emplace_back(field.frame, xxh3(field.sample));
    }
    writer.put(i, sample_key(sample), views, values, fields);
  }
  return writer.publish();
}

// Two shards.
inline void write_golden_jpeg_dataset(const std::filesystem::path& folder,
                                      const std::filesystem::path& tests) {
  const GoldenJpegs of = golden_jpegs().front();
  DatasetInfo info{of.options};
  info.classes = {"a", "b", "c"};
  info.source_digest = "fedcba9876543210";
  info.inputs = kGoldenSamples;
  info.shards = {write_golden_jpegs(folder / "shard-00000.safetensors", tests, of, 0, 2),
                 write_golden_jpegs(folder / "shard-00001.safetensors", tests, of, 2, 1)};
  publish_file(folder / kRejectsFile, "path,reason\n");
  publish_file(folder / kDatasetFile, serialize_dataset(info));
}

}  // namespace shard::testing
