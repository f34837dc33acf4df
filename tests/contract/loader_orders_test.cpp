// The order of batches through whole loaders: ten sets of buckets, and windows of samples sorted by size, for
// 1, 2, 3 and 8 ranks, and from 100 points of an epoch on: the same global batches, each sample exactly once.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>

#include "support/loader/loader_fixture.hpp"

namespace shard::testing {
namespace {

constexpr std::uint64_t kOrderSamples = 3'000;
constexpr std::uint64_t kGlobal = 24;  // which every number of ranks divides
constexpr std::size_t kPoints = 100;
constexpr std::uint32_t kWorlds[] = {1, 2, 3, 8};
constexpr std::uint64_t kEpoch = 4;

using GlobalBatches = std::vector<std::vector<std::uint64_t>>;

SampleSize tiny_size(std::uint64_t index) {
  std::mt19937_64 random(index);
  return {static_cast<std::uint32_t>(1 + random() % 9), static_cast<std::uint32_t>(1 + random() % 9)};
}

// Samples of 1 x 1 to 9 x 9 gray pixels.
void write_tiny(const std::filesystem::path& folder) {
  DatasetInfo info;
  info.spec = {DType::u8, Layout::nhwc, 1, 0, 0};
  info.fingerprint = info.source_digest = "0123456789abcdef";
  std::uint64_t index = 0;
  for (const std::uint64_t count : {kOrderSamples / 2, kOrderSamples / 4, kOrderSamples / 4}) {
    ShardWriter writer = ShardWriter::create(folder / fmt::format("shard-{}.safetensors", info.shards.size()),
                                             count, ShardWriterOptions{info});
    for (std::uint64_t i = 0; i < count; ++i, ++index) {
      const auto label = static_cast<std::int64_t>(index);
      const std::array<std::span<const std::byte>, 1> rows{std::as_bytes(std::span(&label, 1))};
      const SampleSize size = tiny_size(index);
      const std::vector<std::byte> bytes(std::size_t{size.height} * size.width, std::byte{7});
      writer.put(i, fmt::format("k{}", index), rows, SampleValues(bytes, size.height, size.width));
    }
    info.shards.push_back(writer.publish());
  }
  info.inputs = index;
  publish_file(folder / kDatasetFile, serialize_dataset(info));
}

// One loader for each of some ranks.
class Ranks {
 public:
  Ranks(const Dataset& data, const std::shared_ptr<Device>& device, LoaderOptions options,
        std::uint32_t world) {
    options.world_size = world;
    options.batch_size = kGlobal / world;
    options.batch_pixels /= world;
    for (options.rank = 0; options.rank < world; ++options.rank)
      loaders_.push_back(std::make_unique<Loader>(data, device, options));
  }
  void start() {
    for (const auto& loader : loaders_) loader->start_epoch(kEpoch);
  }
  void resume(const LoaderState& state) {
    for (const auto& loader : loaders_) loader->resume(state);
  }
  LoaderState state() const { return LoaderState::parse(loaders_.back()->state().serialize()); }
  // The samples of the next global batch whose mask is 1, rank by rank; null at the end of the epoch.
  std::optional<std::vector<std::uint64_t>> next() {
    std::vector<std::uint64_t> samples;
    std::size_t ended = 0;
    for (const auto& loader : loaders_) {
      const std::optional<Batch> batch = loader->next();
      if (!batch) ++ended;
      for (std::size_t i = 0; batch && i < batch->size(); ++i)
        if (batch->mask()[i] != 0) samples.push_back(batch->ids()[i]);
    }
    EXPECT_TRUE(ended == 0 || ended == loaders_.size()) << "all ranks have as many batches";
    if (ended > 0) return std::nullopt;
    return samples;
  }
  GlobalBatches rest() {
    GlobalBatches batches;
    while (auto batch = next()) batches.push_back(std::move(*batch));
    return batches;
  }

 private:
  std::vector<std::unique_ptr<Loader>> loaders_;
};

// Two batches are compared after each point; every tenth point has the whole rest of the epoch.
void expect_one_order(const Dataset& data, const std::shared_ptr<Device>& device,
                      const LoaderOptions& options) {
  Ranks alone(data, device, options, 1);
  std::vector<LoaderState> states;
  alone.start();
  states.push_back(alone.state());
  GlobalBatches batches;
  while (auto batch = alone.next()) {
    batches.push_back(std::move(*batch));
    states.push_back(alone.state());
  }
  ASSERT_GT(batches.size(), kPoints);
  std::vector<int> times(kOrderSamples, 0);
  std::uint64_t delivered = 0;
  for (const auto& batch : batches)
    for (const std::uint64_t sample : batch) {
      ++times[sample];
      ++delivered;
    }
  if (options.tail == Tail::wrap) {
    EXPECT_GE(*std::min_element(times.begin(), times.end()), 1);
  } else {
    EXPECT_EQ(*std::max_element(times.begin(), times.end()), 1);
    if (options.tail != Tail::drop) {
      EXPECT_EQ(delivered, kOrderSamples);
    }
  }
  for (const std::uint32_t world : kWorlds) {
    Ranks ranks(data, device, options, world);
    ranks.start();
    ASSERT_EQ(ranks.rest(), batches) << world << " ranks";
    for (std::size_t i = 0; i < kPoints; ++i) {
      const std::size_t point = i * batches.size() / (kPoints - 1);  // the first and the last are among them
      ranks.resume(states[point]);
      const auto from = batches.begin() + static_cast<std::ptrdiff_t>(point);
      if (i % 10 == 9) {
        ASSERT_EQ(ranks.rest(), GlobalBatches(from, batches.end())) << world << " ranks from " << point;
        continue;
      }
      for (auto expected = from; expected != batches.end() && expected - from < 2; ++expected)
        ASSERT_EQ(ranks.next(), *expected) << world << " ranks from " << point;
    }
  }
}

LoaderOptions tiny_options(std::uint64_t seed) {
  LoaderOptions options;
  options.threads = 1;
  options.prefetch = 1;
  options.seed = seed;
  options.batch_size = kGlobal;
  constexpr Tail kTails[] = {Tail::drop, Tail::short_, Tail::pad, Tail::wrap};
  options.tail = kTails[seed % 4];
  options.order = seed % 3 == 2 ? OrderMode::sequential : OrderMode::shuffle;
  return options;
}

class LoaderOrders : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    write_tiny(folder_->path());
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static TempDir* folder_;
};
TempDir* LoaderOrders::folder_ = nullptr;

TEST_P(LoaderOrders, OfBucketsIsTheSameForAnyNumberOfRanksAndFromAnyPointOn) {
  LoaderOptions options = tiny_options(GetParam());
  std::mt19937_64 random(GetParam());
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> sides;
  for (std::size_t count = 1 + GetParam(); sides.size() < count;)
    sides[{static_cast<std::uint32_t>(3 + random() % 4), static_cast<std::uint32_t>(3 + random() % 4)}] =
        true;
  for (const auto& [side, used] : sides) options.buckets.push_back({side.first, side.second});
  // By pixels: 8 samples of 36 pixels, and more of smaller ones.
  if (GetParam() % 2 == 1) options.batch_pixels = 8 * 36;
  options.bucket_crop = GetParam() % 5 == 0 ? BucketCrop::random : BucketCrop::center;
  expect_one_order(Dataset::open(folder_->path()), make_host_device(1), options);
}

class WindowOrders : public LoaderOrders {};

TEST_P(WindowOrders, OfPaddedSamplesIsTheSameForAnyNumberOfRanksAndFromAnyPointOn) {
  LoaderOptions options = tiny_options(GetParam());
  options.order = GetParam() == 3 ? OrderMode::windowed : options.order;
  options.window_shards = 1;
  options.transform.padded = 1;
  options.length_window = 300 * (GetParam() + 1);
  expect_one_order(Dataset::open(folder_->path()), make_host_device(1), options);
}

INSTANTIATE_TEST_SUITE_P(Sets, LoaderOrders, ::testing::Range<std::uint64_t>(0, 10));
INSTANTIATE_TEST_SUITE_P(Tails, WindowOrders, ::testing::Range<std::uint64_t>(0, 4));

}  // namespace
}  // namespace shard::testing
