// shardbench load: what it measures is what the loader delivered.
#include <gtest/gtest.h>

#include "load_bench.hpp"
#include "temp_dir.hpp"

namespace shard::bench {
namespace {

TEST(ShardbenchLoad, MeasuresWholeEpochsAgainstABareGather) {
  const testing::TempDir dir;
  const std::string folder = (dir.path() / "data").string();
  make_random_dataset(folder, 100, {DType::u8, Layout::nhwc, 3, 32, 32}, 2);
  const auto dataset = std::make_shared<const Dataset>(Dataset::open(folder));
  ASSERT_EQ(dataset->size(), 100U);
  LoadCase load;
  load.options.order.batch_size = 10;
  load.options.verify = Verify::always;  // the random samples carry true checksums
  load.seconds = 0.01;
  load.repeats = 2;
  const LoadResult result = bench_load(dataset, make_host_device(1), load);
  ASSERT_EQ(result.samples.size(), 2U);
  for (const LoadSample& sample : result.samples) {
    EXPECT_GT(sample.samples_per_second, 0);
    EXPECT_DOUBLE_EQ(sample.bytes_per_second, sample.samples_per_second * 3072);
  }
  EXPECT_GT(result.limit_bytes_per_second, 0);
  EXPECT_EQ(result.stats.transport, TransportKind::mapped);
  EXPECT_EQ(result.stats.batches % 10, 1U);  // whole epochs of ten, and the first batch
}

// The frames of constant samples are much smaller than the samples, and the last one ends with its file.
TEST(ShardbenchLoad, MeasuresCodecsWithFrames) {
  for (const Codec codec : {Codec{Codec::Kind::zstd, 1}, Codec{Codec::Kind::packed, 3}}) {
    const testing::TempDir dir;
    DatasetInfo info;
    info.spec = {DType::u8, Layout::nhwc, 3, 200, 200};
    info.codec = codec;
    info.fingerprint = info.source_digest = "0123456789abcdef";
    info.inputs = 4;
    ShardWriterOptions options;
    options.spec = info.spec;
    options.codec = codec;
    options.fingerprint = info.fingerprint;
    ShardWriter writer = ShardWriter::create(dir.path() / "s", 4, options);
    const std::vector<std::byte> sample(info.spec.size_bytes(), std::byte{7});
    for (std::uint64_t i = 0; i < 4; ++i) writer.put(i, std::to_string(i), std::vector<std::byte>(8), sample);
    info.shards = {writer.publish()};
    publish_file(dir.path() / kDatasetFile, serialize_dataset(info));
    LoadCase load;
    load.options.order.batch_size = 2;
    load.options.verify = Verify::always;
    load.seconds = 0.01;
    load.repeats = 1;
    const auto dataset = std::make_shared<const Dataset>(Dataset::open(dir.path()));
    const LoadResult result = bench_load(dataset, make_host_device(1), load);
    EXPECT_GT(result.limit_bytes_per_second, 0);
    EXPECT_EQ(result.stats.transport, TransportKind::staged);
  }
}

TEST(ShardbenchLoad, KeepsADataSetThatIsThere) {
  const testing::TempDir dir;
  const std::string folder = (dir.path() / "data").string();
  make_random_dataset(folder, 10, {DType::u8, Layout::nhwc, 3, 8, 8}, 1);
  make_random_dataset(folder, 20, {DType::u8, Layout::nhwc, 3, 8, 8}, 1);
  EXPECT_EQ(Dataset::open(folder).size(), 10U);
}

}  // namespace
}  // namespace shard::bench
