// No damage survives: every byte of dataset.json flipped, every length, and mixed-up files.
#include <gtest/gtest.h>

#include "shard/dataset.hpp"
#include "support/expect_error.hpp"
#include "support/format/shard_samples.hpp"
#include "support/temp_dir.hpp"

namespace shard {
namespace {

using namespace shard::testing;

constexpr std::byte kMasks[] = {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}};

DatasetInfo two_shard_dataset(const std::filesystem::path& folder, const ShardWriterOptions& options) {
  DatasetInfo info{options};
  info.classes = {"cat", "dog \"2\"", escape_key("\xff\n")};
  info.source_digest = "00000000deadbeef";
  info.rejects = 2;
  for (std::uint64_t shard = 0; shard < 2; ++shard) {
    ShardWriter writer = ShardWriter::create(folder / ("s" + std::to_string(shard)), 3, options);
    for (std::uint64_t i = 0; i < 3; ++i) {
      const std::uint64_t sample = shard * 3 + i;
      writer.put(i, sample_key(sample % 3), column_bytes(options.columns, sample),
                 sample_bytes(options.spec, sample));
    }
    info.shards.push_back(writer.publish());
  }
  info.inputs = info.samples() + info.rejects;
  publish_file(folder / kDatasetFile, serialize_dataset(info));
  return info;
}

// Opens the data set and checks everything in it.
void verify_dataset(const std::filesystem::path& folder) {
  const Dataset dataset = Dataset::open(folder);
  for (std::uint32_t i = 0; i < dataset.info().shards.size(); ++i) verify_shard(dataset.shard(i));
}

TEST(DatasetDamage, NoFlippedCutOrAppendedByteOfDatasetJsonSurvives) {
  const TempDir dir;
  two_shard_dataset(dir.path(), small_options());
  const std::string good = [&] {
    const auto bytes = file_bytes(dir.path() / kDatasetFile);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }();
  ASSERT_NO_THROW(parse_dataset(good));
  std::size_t survivors = 0;
  const auto probe = [&](const std::string& text) {
    try {
      parse_dataset(text);
      ++survivors;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.what();
    }
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (std::byte mask : kMasks) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(static_cast<std::byte>(damaged[i]) ^ mask);
      probe(damaged);
    }
    probe(good.substr(0, i));
    probe(good.substr(0, i) + "\n" + good.substr(i));
    probe(good.substr(0, i) + good.substr(i + 1));
  }
  for (const char* more : {"\n", " ", "}", "{}", "\t"}) probe(good + more);
  EXPECT_EQ(survivors, 0U);
}

TEST(DatasetDamage, SwappedShardsAreFound) {
  const TempDir dir;
  two_shard_dataset(dir.path(), small_options());
  ASSERT_NO_THROW(verify_dataset(dir.path()));
  std::filesystem::rename(dir.path() / "s0", dir.path() / "x");
  std::filesystem::rename(dir.path() / "s1", dir.path() / "s0");
  std::filesystem::rename(dir.path() / "x", dir.path() / "s1");
  EXPECT_SHARD_ERROR(verify_dataset(dir.path()), ErrorCode::corrupt, "does not belong to");
}

TEST(DatasetDamage, AMissingShardIsNamed) {
  const TempDir dir;
  two_shard_dataset(dir.path(), small_options());
  std::filesystem::remove(dir.path() / "s1");
  EXPECT_SHARD_ERROR(Dataset::open(dir.path()), ErrorCode::corrupt, "s1\" is missing");
}

// As shardify --overwrite does it: the names are exchanged, then the old data set is removed.
TEST(DatasetDamage, AShardOfADataSetThatWasReplacedIsRefusedAndSaysSo) {
  const TempDir dir;
  for (const char* name : {"set", "new"}) {
    std::filesystem::create_directory(dir.path() / name);
    two_shard_dataset(dir.path() / name, small_options());
  }
  const Dataset dataset = Dataset::open(dir.path() / "set");
  EXPECT_EQ(dataset.shard(0).size(), 3U);
  std::filesystem::rename(dir.path() / "set", dir.path() / "old");
  std::filesystem::rename(dir.path() / "new", dir.path() / "set");
  std::filesystem::remove_all(dir.path() / "old");
  EXPECT_SHARD_ERROR(dataset.shard(1), ErrorCode::not_found,
                     "set\" was replaced or moved while it was in use");
}

TEST(DatasetDamage, AShardOfAnotherSizeIsNamed) {
  const TempDir dir;
  two_shard_dataset(dir.path(), small_options());
  std::filesystem::resize_file(dir.path() / "s1", 5000);
  EXPECT_SHARD_ERROR(Dataset::open(dir.path()), ErrorCode::corrupt, "s1\" has 5000 bytes");
}

TEST(DatasetDamage, AShardOfAnotherConversionIsFound) {
  const TempDir dir;
  ShardWriterOptions options = small_options();
  two_shard_dataset(dir.path(), options);
  options.fingerprint = "ffffffffffffffff";
  std::filesystem::remove(dir.path() / "s1");
  write_shard(dir.path() / "s1", options, 3);
  const Dataset dataset = Dataset::open(dir.path());
  EXPECT_NO_THROW(dataset.shard(0));
  EXPECT_SHARD_ERROR(dataset.shard(1), ErrorCode::corrupt, "fingerprint is ffffffffffffffff");
  EXPECT_SHARD_ERROR(dataset.shard(1), ErrorCode::corrupt,
                     "fingerprint is ffffffffffffffff");  // again, not cached
}

TEST(RelativePaths, MeanWhatTheyMeantWhenTheDataSetWasOpened) {
  const TempDir dir;
  two_shard_dataset(dir.path(), small_options());
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  const Dataset dataset = Dataset::open(".");
  const ShardReader reader = ShardReader::open("s0");
  const ShardReader& first = dataset.shard(0);
  std::filesystem::current_path(before);
  EXPECT_NO_THROW(dataset.shard(1)) << "opened from another folder";
  EXPECT_EQ(first.change(), "");
  EXPECT_EQ(reader.change(), "");
}

}  // namespace
}  // namespace shard
