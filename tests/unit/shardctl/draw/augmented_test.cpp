// What shardctl shows is what a loader delivers.
#include "shardctl/draw/augmented.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "shard/loader/loader.hpp"
#include "shardctl/draw/operation_names.hpp"
#include "support/expect_error.hpp"
#include "support/format/shard_samples.hpp"
#include "support/temp_dir.hpp"

namespace shard::ctl {
namespace {

using namespace shard::testing;

constexpr std::uint64_t kSamples = 6;

void write_set(const std::filesystem::path& folder, const CodecSpec& codec, std::uint32_t channels,
               DType dtype) {
  ShardWriterOptions options = small_options(dtype, Layout::nchw, codec);
  options.spec.channels = channels;
  options.spec.height = 40;
  options.spec.width = 48;
  DatasetInfo info{options};
  info.classes = {"a", "b", "c", "d", "e", "f"};
  info.source_digest = "fedcba9876543210";
  info.inputs = kSamples;
  ShardWriter writer = ShardWriter::create(folder / "shard-00000.safetensors", kSamples, options);
  const ValueTable values(dtype == DType::u8 ? DType::f32 : dtype, options.normalization, channels);
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    std::vector<std::byte> sample(static_cast<std::size_t>(options.spec.size_bytes()));
    const std::size_t plane = 40 * 48;
    for (std::size_t at = 0; at < channels * plane; ++at) {
      const auto byte = static_cast<std::uint8_t>(at * (i + 3) / 7 + at / 48 * 5);
      if (dtype == DType::u8) {
        sample[at] = static_cast<std::byte>(byte);
        continue;
      }
      const std::uint32_t bits = values.bits[at / plane][byte];
      sample[2 * at] = static_cast<std::byte>(bits);
      sample[2 * at + 1] = static_cast<std::byte>(bits >> 8U);
    }
    writer.put(i, sample_key(i), column_bytes(options.columns, i), sample);
  }
  info.shards = {writer.publish()};
  publish_file(folder / kRejectsFile, "path,reason\n");
  publish_file(folder / kDatasetFile, serialize_dataset(info));
}

// All samples of an epoch, u8 RGB.
std::vector<std::vector<std::uint8_t>> delivered(const std::filesystem::path& folder,
                                                 const std::string& policy, std::uint64_t seed,
                                                 std::uint64_t epoch) {
  const Dataset data = Dataset::open(folder);
  LoaderOptions options;
  options.batch_size = kSamples;
  options.order = OrderMode::sequential;
  options.seed = seed;
  options.transform.crop = CropKind::random_resized;
  options.transform.crop_height = data.info().spec.height;
  options.transform.crop_width = data.info().spec.width;
  options.transform.flip = 0.5;
  options.transform.dtype = DType::u8;
  options.transform.layout = Layout::nhwc;
  options.transform.operations = parse_policy(policy);
  Loader loader(data, make_host_device(2), options);
  std::vector<std::vector<std::uint8_t>> all;
  for (Batch& batch : loader.epoch(epoch)) {
    batch.wait();
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(batch.images().data);
    const std::size_t size = std::size_t{40} * 48 * data.info().spec.channels;
    for (std::size_t i = 0; i < kSamples; ++i) {
      std::vector<std::uint8_t>& rgb = all.emplace_back();
      for (std::size_t at = 0; at < size; ++at)
        rgb.insert(rgb.end(), data.info().spec.channels == 1 ? 3 : 1, bytes[i * size + at]);
    }
  }
  return all;
}

TEST(Augmented, IsWhatALoaderDelivers) {
  const struct {
    const char* codec;
    std::uint32_t channels;
    DType dtype;
  } sets[] = {{"none", 3, DType::u8},
              {"zstd:1", 3, DType::u8},
              {"packed", 3, DType::u8},
              {"packed", 3, DType::f16},
              {"none", 1, DType::u8}};
  for (const auto& set : sets) {
    const TempDir dir;
    write_set(dir.path(), codec_spec_from_string(set.codec), set.channels, set.dtype);
    const Source source = Source::open(dir.path().string());
    for (const char* policy : {"rand-augment", "rand-augment:3,14", "trivial-augment", "auto-augment:svhn",
                               "aug-mix", "3-augment", "simclr", "crop"}) {
      SCOPED_TRACE(std::string(set.codec) + " " + policy);
      const Augmented augmented(source.info(), policy, 7);
      for (const std::uint64_t epoch : {0, 3}) {
        const auto expected = delivered(dir.path(), policy, 7, epoch);
        ASSERT_EQ(expected.size(), kSamples);
        for (std::uint64_t i = 0; i < kSamples; ++i)
          EXPECT_TRUE(augmented.picture(source, i, epoch) == expected[i]) << i << " in epoch " << epoch;
      }
    }
    EXPECT_FALSE(Augmented(source.info(), "crop", 7).picture(source, 0, 0) ==
                 Augmented(source.info(), "crop", 8).picture(source, 0, 0))
        << "the seed decides";
  }
}

TEST(Augmented, AnOperationAloneChangesSamplesThatAreNotCropped) {
  const TempDir dir;
  write_set(dir.path(), {}, 3, DType::u8);
  const Source source = Source::open(dir.path().string());
  std::vector<std::byte> stored(static_cast<std::size_t>(source.info().spec.size_bytes()));
  source.read(0, stored);
  std::vector<std::uint8_t> plain;
  for (std::size_t at = 0; at < std::size_t{40} * 48; ++at)
    for (std::size_t c = 0; c < 3; ++c) plain.push_back(static_cast<std::uint8_t>(stored[c * 40 * 48 + at]));
  const std::string all = operation_names();
  std::string_view names = all;
  std::size_t count = 0;
  while (!names.empty()) {
    const std::string name(names.substr(0, names.find(", ")));
    names.remove_prefix(std::min(names.size(), name.size() + 2));
    SCOPED_TRACE(name);
    ++count;
    ASSERT_TRUE(visible_operation(name));
    if (name == "turns" || name == "auto-contrast") continue;  // for squares; the values are 0 to 255 already
    const Augmented augmented(source.info(), name, 7);
    bool changed = false;
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      const std::vector<std::uint8_t> picture = augmented.picture(source, 0, epoch);
      ASSERT_EQ(picture.size(), plain.size());
      changed = changed || picture != plain;
    }
    EXPECT_TRUE(changed);
  }
  std::size_t expected = 4;  // the parts of color_jitter
  for (const Operation& one : all_operations()) expected += description_of(one).is_policy ? 0 : 1;
  EXPECT_EQ(count, expected);
  EXPECT_FALSE(visible_operation("Invert"));
}

TEST(Augmented, WhatItDoesNotKnowIsNamed) {
  for (const char* policy : {"", "rand", "rand-augment:2", "rand-augment:2,", "rand-augment:2,9x",
                             "rand-augment:-1,9", "auto-augment:coco", "crop:1", "trivial-augment:"})
    EXPECT_SHARD_ERROR(parse_policy(policy), ErrorCode::invalid_argument,
                       "expected one of rand-augment[:COUNT");
  const TempDir dir;
  write_set(dir.path(), {}, 4, DType::u8);
  EXPECT_SHARD_ERROR(Augmented(Source::open(dir.path().string()).info(), "crop", 0), ErrorCode::unsupported,
                     "with 4 channels");
  const TempDir floats;
  write_set(floats.path(), {}, 3, DType::f16);
  EXPECT_SHARD_ERROR(Augmented(Source::open(floats.path().string()).info(), "crop", 0),
                     ErrorCode::invalid_argument, "u8");
}

}  // namespace
}  // namespace shard::ctl
