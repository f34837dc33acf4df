// The room of a batch of samples of any size, by how different they are.
#include "setup/batch_bytes.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "support/expect_error.hpp"
#include "support/loader/loader_fixture.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kSamples = 400;  // of a shard
constexpr std::uint32_t kWidth = 10;

// Shards of samples of 3 channels with these rows each.
void write(const std::filesystem::path& folder, std::uint64_t shards,
           const std::function<std::uint32_t(std::uint64_t shard, std::uint64_t sample)>& rows) {
  DatasetInfo info;
  info.spec = {DType::u8, Layout::nhwc, 3, 0, 0};
  info.fingerprint = info.source_digest = "0123456789abcdef";
  for (std::uint64_t s = 0; s < shards; ++s) {
    ShardWriter writer = ShardWriter::create(folder / ("shard-" + std::to_string(s) + ".safetensors"),
                                             kSamples, ShardWriterOptions{info});
    const std::vector<std::byte> label(8);
    for (std::uint64_t i = 0; i < kSamples; ++i) {
      const std::uint32_t height = rows(s, i);
      const std::vector<std::byte> sample(std::size_t{height} * kWidth * 3);
      writer.put(i, std::to_string(s * kSamples + i), label, SampleValues(sample, height, kWidth));
    }
    info.shards.push_back(writer.publish());
    info.inputs += kSamples;
  }
  publish_file(folder / kDatasetFile, serialize_dataset(info));
}

class BatchBytes : public ::testing::Test {
 protected:
  std::uint64_t room(const std::function<void(LoaderOptions&)>& change = {}) const {
    LoaderOptions options;
    options.batch_size = 100;
    if (change) change(options);
    set_batch_bytes(Dataset::open(dir_.path()), device_->info(), options);
    return options.memory.batch_bytes;
  }
  TempDir dir_;
  std::shared_ptr<Device> device_ = make_host_device(1);
};

TEST_F(BatchBytes, AreThoseOfTheSamplesIfAllAreAlike) {
  write(dir_.path(), 20, [](auto, auto) { return 8U; });
  EXPECT_EQ(room(), 100U * 8 * kWidth * 3);
}

TEST_F(BatchBytes, GrowWithWhatSamplesDifferAndWithSmallBatches) {
  // 4 or 12 rows: on average 8, the standard deviation is 4.
  write(dir_.path(), 20, [](auto, auto sample) { return sample % 2 == 0 ? 4U : 12U; });
  const double mean = 100 * 8 * kWidth * 3;
  EXPECT_NEAR(static_cast<double>(room()), mean * 1.2, 2);  // 4 deviations of the mean of 100
  EXPECT_NEAR(static_cast<double>(room([](LoaderOptions& of) { of.batch_size = 400; })), 4 * mean * 1.1, 2);
  EXPECT_NEAR(static_cast<double>(room([](LoaderOptions& of) { of.batch_size = 4; })), mean / 25 * 1.5, 2);
}

TEST_F(BatchBytes, AreHalfMoreThanTheMeanWhereSamplesLieTogether) {
  write(dir_.path(), 20, [](auto, auto sample) { return sample % 2 == 0 ? 7U : 9U; });
  const double mean = 100 * 8 * kWidth * 3;
  EXPECT_LT(static_cast<double>(room()), mean * 1.06);
  const auto walking = [](LoaderOptions& of) { of.order = OrderMode::sequential; };
  EXPECT_NEAR(static_cast<double>(room(walking)), mean * 1.5, 2);
  const auto repeated = [](LoaderOptions& of) { of.repeats = 2; };
  EXPECT_NEAR(static_cast<double>(room(repeated)), mean * 1.5, 2);
}

TEST_F(BatchBytes, AllowForShardsThatWereNotLookedAt) {
  const auto by_shard = [](auto shard, auto) { return shard % 2 == 0 ? 8U : 9U; };
  write(dir_.path(), 8, by_shard);  // all of them
  const double mean = 100 * 8.5 * kWidth * 3;
  const double of_all = static_cast<double>(room());
  EXPECT_NEAR(of_all, mean * (1 + 4 * 0.5 / 8.5 / 10), 2);
  TempDir more;
  write(more.path(), 24, [&](auto shard, auto sample) { return by_shard(shard / 3, sample); });
  LoaderOptions options;
  options.batch_size = 100;
  set_batch_bytes(Dataset::open(more.path()), device_->info(), options);
  EXPECT_GT(static_cast<double>(options.memory.batch_bytes), of_all + mean * 0.05);
}

TEST_F(BatchBytes, HaveRoomForTheLargestSample) {
  write(dir_.path(), 1, [](auto, auto sample) { return sample == 7 ? 5000U : 1U; });
  EXPECT_EQ(room([](LoaderOptions& of) { of.batch_size = 2; }), 5000U * kWidth * 3);
  LoaderOptions options;
  options.memory.batch_bytes = 5000 * kWidth * 3 - 1;
  EXPECT_SHARD_ERROR(set_batch_bytes(Dataset::open(dir_.path()), device_->info(), options),
                     ErrorCode::resource, "the largest sample has 150000 bytes");
}

}  // namespace
}  // namespace shard::testing
