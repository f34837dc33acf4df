// Shards that were written once must be read for ever; and what does not pass a compressor is written in the
// same bytes.
#include <gtest/gtest.h>

#include <algorithm>

#include "golden_cases.hpp"
#include "temp_dir.hpp"

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

}  // namespace
}  // namespace shard
