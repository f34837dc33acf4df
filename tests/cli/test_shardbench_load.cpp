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

TEST(ShardbenchLoad, KeepsADataSetThatIsThere) {
  const testing::TempDir dir;
  const std::string folder = (dir.path() / "data").string();
  make_random_dataset(folder, 10, {DType::u8, Layout::nhwc, 3, 8, 8}, 1);
  make_random_dataset(folder, 20, {DType::u8, Layout::nhwc, 3, 8, 8}, 1);
  EXPECT_EQ(Dataset::open(folder).size(), 10U);
}

}  // namespace
}  // namespace shard::bench
