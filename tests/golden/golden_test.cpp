// Shards that were written once must be read for ever; and what does not pass a compressor is written in the
// same bytes.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/format/golden_cases.hpp"
#include "support/jpeg/golden_jpegs.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

const std::filesystem::path kGolden = std::filesystem::path(SHARD_TEST_DATA) / "golden";

class Golden : public ::testing::TestWithParam<GoldenCase> {
 protected:
  std::filesystem::path file() const { return kGolden / "shards" / (GetParam().name + ".safetensors"); }
};

TEST_P(Golden, ShardIsReadEqual) {
  const ShardWriterOptions& options = GetParam().options;
  const ShardReader reader = ShardReader::open(file());
  verify_shard(reader);
  ASSERT_EQ(reader.size(), kGoldenSamples);
  EXPECT_EQ(reader.header().spec, options.spec);
  EXPECT_EQ(reader.header().normalization, options.normalization);
  EXPECT_EQ(reader.header().provenance, options.provenance);
  EXPECT_EQ(reader.header().codec, options.codec);
  EXPECT_EQ(reader.columns().size(), options.columns.size());
  ASSERT_EQ(reader.header().fields, options.fields);
  for (std::uint64_t i = 0; i < kGoldenSamples; ++i) {
    ASSERT_EQ(reader.images().spec_of(i), sized_spec(options.spec, i));
    std::vector<std::byte> sample(static_cast<std::size_t>(reader.images().spec_of(i).size_bytes()));
    reader.images().read(i, sample);
    EXPECT_EQ(sample, sample_bytes(options.spec, i));
    EXPECT_EQ(reader.key(i), sample_key(i));
    EXPECT_EQ(read_columns(reader, options.columns, i), column_bytes(options.columns, i));
    for (std::size_t f = 0; f < options.fields.size(); ++f) {
      ASSERT_EQ(reader.images(f).spec_of(i), sized_spec(options.fields[f].spec, field_index(f, i)));
      std::vector<std::byte> field(static_cast<std::size_t>(reader.images(f).spec_of(i).size_bytes()));
      reader.images(f).read(i, field);
      EXPECT_EQ(field, field_bytes(options.fields, f, i)) << options.fields[f].name;
    }
  }
}

TEST_P(Golden, ShardIsWrittenInTheSameBytes) {
  const ShardWriterOptions& options = GetParam().options;
  const auto zstd = [](const CodecSpec& codec) { return codec.kind == CodecSpec::Kind::zstd; };
  if (zstd(options.codec) || std::any_of(options.fields.begin(), options.fields.end(),
                                         [&](const FieldSpec& field) { return zstd(field.codec); }))
    GTEST_SKIP() << "frames depend on the version of the compressor";
  const TempDir dir;
  write_shard(dir.path() / "s", GetParam().options, kGoldenSamples);
  EXPECT_TRUE(file_bytes(dir.path() / "s") == file_bytes(file()));
}

INSTANTIATE_TEST_SUITE_P(Shards, Golden, ::testing::ValuesIn(golden_cases()), [](const auto& golden) {
  std::string name = golden.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

void expect_golden_dataset(const char* name, GoldenDataset which) {
  const Dataset dataset = Dataset::open(kGolden / name);
  EXPECT_EQ(dataset.size(), 3U);
  EXPECT_EQ(dataset.info().classes, (std::vector<std::string>{"caf\xc3\xa9", "quote\"", "raw\\xff"}));
  for (std::uint32_t i = 0; i < 2; ++i) verify_shard(dataset.shard(i));
  const TempDir dir;
  write_golden_dataset(dir.path(), which);
  for (const auto& entry : std::filesystem::directory_iterator(kGolden / name)) {
    EXPECT_TRUE(file_bytes(dir.path() / entry.path().filename()) == file_bytes(entry.path())) << entry.path();
  }
}

TEST(GoldenDataset, IsReadAndWrittenInTheSameBytes) {
  expect_golden_dataset("dataset", GoldenDataset::plain);
  expect_golden_dataset("dataset-fields", GoldenDataset::fields);
  expect_golden_dataset("dataset-wide", GoldenDataset::wide);
  expect_golden_dataset("dataset-images", GoldenDataset::images);
  expect_golden_dataset("dataset-free", GoldenDataset::free);
}

void expect_golden_images(const StoredImages& images, const std::vector<GoldenFile>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    const GoldenImage expected = golden_image(SHARD_TEST_DATA, files[i], images.spec().channels);
    EXPECT_EQ(images.frame_spec(i).file, expected.frame.file);
    std::vector<std::byte> bytes;
    images.read_file(i, bytes);
    EXPECT_EQ(bytes, expected.file) << files[i].name;
    bytes.resize(static_cast<std::size_t>(images.spec_of(i).size_bytes()));
    images.read(i, bytes);
    EXPECT_EQ(bytes, expected.sample) << files[i].name;
  }
}

TEST(GoldenJpegs, ShardsAreReadAndWrittenInTheSameBytes) {
  for (const GoldenJpegs& of : golden_jpegs()) {
    const std::filesystem::path file = kGolden / "shards" / (of.name + ".safetensors");
    const ShardReader reader = ShardReader::open(file);
    verify_shard(reader);
    ASSERT_EQ(reader.size(), kGoldenSamples);
    EXPECT_EQ(reader.header().codec, of.options.codec);
    EXPECT_EQ(reader.header().fields, of.options.fields);
    expect_golden_images(reader.images(), of.files);
    if (!of.field_files.empty()) expect_golden_images(reader.images(0), of.field_files);
    const TempDir dir;
    write_golden_jpegs(dir.path() / "s", SHARD_TEST_DATA, of, 0, kGoldenSamples);
    EXPECT_TRUE(file_bytes(dir.path() / "s") == file_bytes(file)) << of.name;
  }
}

TEST(GoldenJpegs, TheDatasetIsReadAndWrittenInTheSameBytes) {
  const Dataset dataset = Dataset::open(kGolden / "dataset-jpeg");
  EXPECT_EQ(dataset.size(), kGoldenSamples);
  for (std::uint32_t i = 0; i < 2; ++i) verify_shard(dataset.shard(i));
  const TempDir dir;
  write_golden_jpeg_dataset(dir.path(), SHARD_TEST_DATA);
  for (const auto& entry : std::filesystem::directory_iterator(kGolden / "dataset-jpeg"))
    EXPECT_TRUE(file_bytes(dir.path() / entry.path().filename()) == file_bytes(entry.path())) << entry.path();
}

}  // namespace
}  // namespace shard
