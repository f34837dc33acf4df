// Further image fields: what is written comes back, whatever the order,
// the threads and the samples that are left out.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "support/expect_error.hpp"
#include "support/format/golden_cases.hpp"
#include "support/format/shard_samples.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;
namespace fs = std::filesystem;

void expect_fields(const ShardReader& reader, const ShardWriterOptions& options,
                   const std::vector<std::uint64_t>& samples) {
  ASSERT_EQ(reader.size(), samples.size());
  ASSERT_EQ(reader.header().fields, options.fields);
  verify_shard(reader);
  for (std::size_t f = 0; f < options.fields.size(); ++f) {
    EXPECT_EQ(reader.field_index(options.fields[f].name), f);
    EXPECT_EQ(reader.header().field_ranges[f].begin % 4096, 0U);
    std::vector<std::byte> out(static_cast<std::size_t>(options.fields[f].spec.size_bytes()));
    std::vector<std::byte> frame;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      reader.images(f).read(i, out);
      EXPECT_EQ(out, field_bytes(options.fields, f, samples[i])) << options.fields[f].name << " of " << i;
      reader.images(f).read_frame(i, frame);
      EXPECT_TRUE(std::equal(frame.begin(), frame.end(), reader.images(f).frame(i).begin()));
      std::vector<std::byte> decoded(out.size());
      if (options.fields[f].codec.kind == CodecSpec::Kind::none)
        decoded = frame;
      else
        reader.images(f).codec().decode(frame, decoded);
      EXPECT_EQ(decoded, out);
    }
  }
}

class ImageFieldCodecs : public ::testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  static ShardWriterOptions options() {
    ShardWriterOptions options =
        small_options(DType::u8, Layout::nhwc, codec_spec_from_string(GetParam().first));
    const CodecSpec others = codec_spec_from_string(GetParam().second);
    options.fields =
        golden_image_fields(others, others.kind == CodecSpec::Kind::packed ? CodecSpec{} : others);
    return options;
  }
};

TEST_P(ImageFieldCodecs, ComeBackEqualWithSomeSamplesLeftOut) {
  for (const std::uint64_t left_out : {99, 0, 3, 6}) {
    const TempDir dir;
    const fs::path path = dir.path() / "s";
    ShardWriterOptions with = options();
    with.planned_key_bytes = left_out == 3 ? 1 : 1'000'000;  // a wrong hint: images have to move down or up
    ShardWriter writer = ShardWriter::create(path, 7, with);
    std::vector<std::uint64_t> stored;
    for (std::uint64_t i = 7; i-- > 0;) {
      if (i == left_out) {
        writer.skip(i);
        continue;
      }
      put_sample(writer, with, i);
      stored.insert(stored.begin(), i);
    }
    const ShardSummary summary = writer.publish();
    EXPECT_EQ(summary.size_bytes, fs::file_size(path));
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 1) << "no temporary file is left";
    expect_fields(ShardReader::open(path), with, stored);
  }
}

TEST_P(ImageFieldCodecs, TheBytesDoNotDependOnThreads) {
  const TempDir dir;
  const ShardWriterOptions with = options();
  write_shard(dir.path() / "one", with, 40);
  ShardWriter writer = ShardWriter::create(dir.path() / "many", 40, with);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = t; i < 40; i += 4) put_sample(writer, with, 39 - i);
    });
  for (std::thread& thread : threads) thread.join();
  writer.publish();
  EXPECT_TRUE(file_bytes(dir.path() / "one") == file_bytes(dir.path() / "many"));
}

INSTANTIATE_TEST_SUITE_P(Codecs, ImageFieldCodecs,
                         ::testing::Values(std::pair("none", "none"), std::pair("none", "zstd:1"),
                                           std::pair("packed", "packed"), std::pair("zstd:1", "none")),
                         [](const auto& codecs) {
                           return std::string(codecs.param.first).substr(0, 4) +
                                  std::string(codecs.param.second).substr(0, 4);
                         });

TEST(ImageFieldWriter, WhatDoesNotFitIsRefusedAndMayBeRetried) {
  const TempDir dir;
  ShardWriterOptions options = image_field_cases()[0].options;
  {
    ShardWriter writer = ShardWriter::create(dir.path() / "s", 1, options);
    const std::vector<std::byte> label(8);
    const std::span<const std::byte> rows[] = {label};
    const auto sample = sample_bytes(options.spec, 0);
    EXPECT_SHARD_ERROR(writer.put(0, "k", rows, sample), ErrorCode::invalid_argument,
                       "0 further images: it has 3 such fields");
    EXPECT_SHARD_ERROR(writer.put(0, "k", label, sample), ErrorCode::invalid_argument, "0 further images");
    const auto mask = field_bytes(options.fields, 0, 0);
    const auto depth = field_bytes(options.fields, 1, 0);
    const SampleValues fields[] = {mask, depth, depth};
    EXPECT_SHARD_ERROR(writer.put(0, "k", rows, sample, fields), ErrorCode::invalid_argument,
                       "field \"latent z\" of 12 bytes: they must be 32");
    put_sample(writer, options, 0);
    writer.publish();
  }
  const auto refused = [&](auto&& change, const char* why) {
    ShardWriterOptions changed = options;
    change(changed.fields);
    EXPECT_SHARD_ERROR(ShardWriter::create(dir.path() / "x", 1, changed), ErrorCode::invalid_argument, why);
    EXPECT_FALSE(fs::exists(dir.path() / "x"));
  };
  refused([](auto& f) { f[0].name = "labels"; }, "field \"labels\": there is another tensor");
  refused([](auto& f) { f[0].name = "images"; }, "there is another tensor \"images\"");
  refused([](auto& f) { f[0].name = f[1].name; }, "field \"depth\": there is another tensor");
  refused([](auto& f) { f[1].name = "mask.frames"; }, "there is another tensor \"mask.frames\"");
  refused([](auto& f) { f[0].name = ""; }, "1 to 200 bytes");
  refused([](auto& f) { f[0].name = "\xff"; }, "1 to 200 bytes of UTF-8");
  refused([](auto& f) { f[0].spec.channels = 2; }, "is a mask of u8 with 2 channels");
  refused([](auto& f) { f[0].spec.height = 0; }, "field \"mask\": sample height is 0");
  refused([](auto& f) { f[0].normalization.mean[0] = 1; }, "its mean and std must be 0 and 1");
  refused([](auto& f) { f[1].codec.kind = CodecSpec::Kind::packed; }, "field \"depth\": codec packed holds");
  refused([](auto& f) { f[1].normalization.std[0] = 0; }, "field \"depth\": std of channel 0");
  refused([](auto& f) { f.resize(257, f[0]); }, "257 further image fields: at most 256");
}

}  // namespace
}  // namespace shard
