// The golden shards: their names and content. tests/golden/ holds them as files; every later version must
// read them, and write those without a compressor in the same bytes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "shard/dataset.hpp"
#include "support/format/shard_samples.hpp"

namespace shard::testing {

inline constexpr std::uint64_t kGoldenSamples = 3;

struct GoldenCase {
  std::string name;  // file name without ".safetensors"
  ShardWriterOptions options;
};

// Columns of all kinds: version 2 of the profile.
inline std::vector<ColumnSpec> golden_fields() {
  return {{"labels", DType::i64, {}},
          {"caption", DType::u8, {}, ColumnKind::text},
          {"boxes", DType::f32, {4}, ColumnKind::ragged},
          {"stamps", DType::u64, {}, ColumnKind::ragged},
          {"angle", DType::f32, {}}};
}

// Samples that only version 2 of the profile can hold.
inline std::vector<GoldenCase> wide_cases() {
  constexpr CodecSpec kZstd{CodecSpec::Kind::zstd, 3};
  std::vector<GoldenCase> cases{{"u16-nchw-none", small_options(DType::u16, Layout::nchw)},
                                {"u16-nhwc-zstd", small_options(DType::u16, Layout::nhwc, kZstd)}};
  ShardWriterOptions bands = small_options(DType::u8, Layout::nhwc);
  bands.spec.channels = 13;
  bands.normalization = {std::vector<float>(13, 0.5F), std::vector<float>(13, 0.25F)};
  bands.normalization.mean[12] = -2.0F;
  cases.push_back({"u8-nhwc-13-none", bands});
  bands.spec = {DType::f32, Layout::nchw, 13, 2, 3};
  bands.codec = kZstd;
  cases.push_back({"f32-nchw-13-zstd", bands});
  const auto tensor = [&](DType dtype, std::vector<std::uint64_t> axes, CodecSpec codec) {
    ShardWriterOptions options = small_options();
    options.spec = tensor_spec(dtype, axes);
    options.normalization = {};
    options.codec = codec;
    cases.push_back({fmt::format("{}-tensor{}-{}", to_string(dtype), axes.size(),
                                 codec.kind == CodecSpec::Kind::none ? "none" : "zstd"),
                     options});
  };
  tensor(DType::i64, {7}, {});
  tensor(DType::u16, {3, 5}, kZstd);
  tensor(DType::bf16, {4, 2, 3}, kZstd);
  tensor(DType::f32, {2, 3, 1, 5}, {});
  return cases;
}

// Masks, depth and latents beside the image: version 2 of the profile.
inline std::vector<FieldSpec> golden_image_fields(CodecSpec mask = {CodecSpec::Kind::packed, 3},
                                                  CodecSpec others = {}) {
  const std::uint64_t axes[] = {4, 2, 2};
  return {{"mask", FieldRole::mask, {DType::u8, Layout::nhwc, 1, 4, 5}, {}, mask},
          {"depth", FieldRole::image, {DType::u16, Layout::nchw, 1, 3, 2}, {{0.5F, 0, 0}, {2, 1, 1}}, others},
          {"latent z", FieldRole::image, tensor_spec(DType::f16, axes), {}, others}};
}

inline std::vector<GoldenCase> image_field_cases() {
  constexpr CodecSpec kZstd{CodecSpec::Kind::zstd, 3};
  ShardWriterOptions options = small_options(DType::u8, Layout::nhwc);
  options.fields = golden_image_fields();
  std::vector<GoldenCase> cases{{"u8-nhwc-none-images", options}};
  options = small_options(DType::f16, Layout::nchw, kZstd);
  options.columns = golden_fields();
  options.fields = golden_image_fields({}, kZstd);
  cases.push_back({"f16-nchw-zstd-images", options});
  return cases;
}

// Samples of any size: version 3 of the profile.
inline std::vector<GoldenCase> free_cases() {
  constexpr CodecSpec kZstd{CodecSpec::Kind::zstd, 3};
  constexpr CodecSpec kPacked{CodecSpec::Kind::packed, 3};
  std::vector<GoldenCase> cases;
  const auto add = [&](DType dtype, Layout layout, CodecSpec codec, std::uint32_t channels = 3) {
    ShardWriterOptions options = small_options(dtype, layout, codec);
    options.spec = {dtype, layout, channels, 0, 0};
    const std::string name = to_string(codec).substr(0, to_string(codec).find(':'));
    cases.push_back(
        {fmt::format("{}-{}-{}-{}-free", to_string(dtype), to_string(layout), channels, name), options});
    return &cases.back().options;
  };
  add(DType::u8, Layout::nhwc, {});
  add(DType::u8, Layout::nchw, kPacked)->columns = golden_fields();
  add(DType::u16, Layout::nhwc, kZstd, 1);
  add(DType::f32, Layout::nchw, {}, 5)->normalization = {};
  ShardWriterOptions* options = add(DType::u8, Layout::nhwc, kZstd);
  options->fields = golden_image_fields();
  options->fields[0].spec = {DType::u8, Layout::nhwc, 1, 0, 0};
  options->fields[1].spec = {DType::u16, Layout::nchw, 1, 0, 0};
  cases.back().name += "-images";
  options = add(DType::f16, Layout::nhwc, {});  // one size, and a mask of any size
  options->spec.height = 4;
  options->spec.width = 5;
  options->fields = {{"mask", FieldRole::mask, {DType::u8, Layout::nhwc, 1, 0, 0}, {}, kPacked}};
  cases.back().name = "f16-nhwc-none-free-mask";
  return cases;
}

inline std::vector<GoldenCase> golden_cases() {
  constexpr CodecSpec kZstd{CodecSpec::Kind::zstd, 3};
  std::vector<GoldenCase> cases;
  for (DType dtype : {DType::u8, DType::f16, DType::bf16, DType::f32}) {
    for (Layout layout : {Layout::nchw, Layout::nhwc}) {
      const std::string name = std::string(to_string(dtype)) + "-" + std::string(to_string(layout));
      cases.push_back({name + "-none", small_options(dtype, layout)});
    }
  }
  cases.push_back({"u8-nchw-zstd", small_options(DType::u8, Layout::nchw, kZstd)});
  cases.push_back({"f16-nhwc-zstd", small_options(DType::f16, Layout::nhwc, kZstd)});
  constexpr CodecSpec kPacked{CodecSpec::Kind::packed, 3};
  cases.push_back({"u8-nchw-packed", small_options(DType::u8, Layout::nchw, kPacked)});
  cases.push_back({"u8-nhwc-packed", small_options(DType::u8, Layout::nhwc, kPacked)});
  ShardWriterOptions table = small_options();
  table.columns = {{"labels", DType::f32, {4}}};
  cases.push_back({"u8-nchw-none-float-labels", table});
  ShardWriterOptions columns = small_options();
  columns.columns = {{"labels", DType::i64, {}},
                     {"mask", DType::u8, {3}},
                     {"box", DType::f32, {2, 2}},
                     {"stamp", DType::u64, {}},
                     {"half", DType::f16, {1}}};
  cases.push_back({"u8-nchw-none-columns", columns});
  ShardWriterOptions fields = small_options();  // version 2 of the profile
  fields.columns = golden_fields();
  cases.push_back({"u8-nchw-none-fields", fields});
  fields.codec = kPacked;
  cases.push_back({"u8-nchw-packed-fields", fields});
  for (const GoldenCase& wide : wide_cases()) cases.push_back(wide);
  for (const GoldenCase& images : image_field_cases()) cases.push_back(images);
  for (const GoldenCase& free : free_cases()) cases.push_back(free);
  return cases;
}

inline void write_golden_shards(const std::filesystem::path& folder) {
  for (const GoldenCase& golden : golden_cases()) {
    write_shard(folder / (golden.name + ".safetensors"), golden.options, kGoldenSamples);
  }
}

// Two shards, one reject.
enum class GoldenDataset { plain, fields, wide, images, free };

inline void write_golden_dataset(const std::filesystem::path& folder,
                                 GoldenDataset which = GoldenDataset::plain) {
  ShardWriterOptions options = which == GoldenDataset::wide ? wide_cases()[2].options : small_options();
  if (which == GoldenDataset::fields) options.columns = golden_fields();
  if (which == GoldenDataset::images) options = image_field_cases()[0].options;
  if (which == GoldenDataset::free) {
    options = free_cases()[4].options;
    options.codec = {};  // so that its bytes do not depend on a compressor
  }
  DatasetInfo info{options};
  info.classes = {"caf\xc3\xa9", "quote\"", "raw\\xff"};
  info.source_digest = "fedcba9876543210";
  info.inputs = 4;
  info.rejects = 1;
  info.shards = {write_shard(folder / "shard-00000.safetensors", options, 2),
                 write_shard(folder / "shard-00001.safetensors", options, 1)};
  publish_file(folder / kRejectsFile, "path,reason\nclass/broken.jpg,\"truncated: 12 bytes, no image\"\n");
  publish_file(folder / kDatasetFile, serialize_dataset(info));
}

}  // namespace shard::testing
