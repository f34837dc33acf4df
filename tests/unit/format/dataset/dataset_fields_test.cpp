// Data sets with further image fields.
#include <gtest/gtest.h>

#include <filesystem>

#include "shard/dataset.hpp"
#include "support/expect_error.hpp"
#include "support/format/dataset_text.hpp"
#include "support/format/golden_cases.hpp"
#include "support/format/shard_samples.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;
namespace fs = std::filesystem;

TEST(ImageFieldDataset, IsDescribedReadAndJoined) {
  const TempDir dir;
  fs::create_directories(dir.path() / "a");
  fs::create_directories(dir.path() / "b");
  write_golden_dataset(dir.path() / "a", GoldenDataset::images);
  write_golden_dataset(dir.path() / "b", GoldenDataset::images);
  const Dataset data = Dataset::open(dir.path() / "a");
  const std::vector<FieldSpec> fields = golden_image_fields();
  EXPECT_EQ(data.info().fields, fields);
  EXPECT_EQ(parse_dataset(serialize_dataset(data.info())).fields, fields);
  const Dataset both = Dataset::open({dir.path() / "a", dir.path() / "b"});
  std::vector<std::byte> depth(12);
  for (std::uint64_t i = 0; i < both.size(); ++i) {
    both.read_field(1, i, depth);
    EXPECT_EQ(depth, field_bytes(fields, 1, i % 3 == 2 ? 0 : i % 3));  // the second shard has one sample
  }
  EXPECT_SHARD_ERROR(both.read_field(3, 0, depth), ErrorCode::invalid_argument, "it has 3 further ones");
  EXPECT_SHARD_ERROR(both.read_field(0, 0, depth), ErrorCode::invalid_argument,
                     "a buffer of 12 bytes for field \"mask\"");
  EXPECT_SHARD_ERROR(data.shard(0).field_index("boxes"), ErrorCode::not_found, "it has \"mask\", \"depth\"");

  const TempDir plain;
  write_golden_dataset(plain.path());
  EXPECT_SHARD_ERROR(Dataset::open({dir.path() / "a", plain.path()}), ErrorCode::invalid_argument,
                     "cannot be one data set");
}

TEST(ImageFieldDataset, AShardWithOtherFieldsDoesNotBelong) {
  const TempDir dir;
  write_golden_dataset(dir.path(), GoldenDataset::images);
  DatasetInfo info = Dataset::open(dir.path()).info();
  info.fields[0].name = "labels of pixels";
  publish_file(dir.path() / kDatasetFile, serialize_dataset(info));
  EXPECT_SHARD_ERROR(Dataset::open(dir.path()).shard(0), ErrorCode::corrupt, "its fields is");
}

TEST(ImageFieldDataset, WhatDatasetJsonSaysIsChecked) {
  const TempDir dir;
  write_golden_dataset(dir.path(), GoldenDataset::images);
  const auto bytes = file_bytes(dir.path() / kDatasetFile);
  const std::string good(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto refused = [&](const std::string& from, const std::string& to, const char* why,
                           ErrorCode code = ErrorCode::corrupt) {
    EXPECT_SHARD_ERROR(parse_dataset(edited(good, from, to)), code, why);
  };
  refused("\"role\": \"mask\"", "\"role\": \"video\"", "has the role \"video\"", ErrorCode::unsupported);
  refused("\"role\": \"mask\", ", "", "an entry of \"fields\" has 7 members: it must have 8");
  refused("\"version\": 2", "\"version\": 1", "version 1 does not have further image fields");
  refused("[4, 5, 1]", "[4, 5]", "a sample with 2 axes");
  refused("[4, 5, 1]", "[4, 5, 1, 1, 1]", "shape has more than four axes");
  refused("[4, 5, 1]", "[4, 5, \"1\"]", "a string is not allowed");
  refused("\"name\": \"depth\"", "\"name\": \"mask\"", "there is another tensor");
}

}  // namespace
}  // namespace shard
