// Which shards are filled at once, by a source of rows whose threads wait for each other.
#include "convert/engine/scheduler.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>

#include "shard/dataset.hpp"
#include "support/temp_dir.hpp"

namespace shard::convert {
namespace {

constexpr std::uint64_t kShards = 24;
constexpr std::uint64_t kRows = 6;

DatasetSpec small_spec() {
  DatasetSpec spec;
  spec.spec = {DType::u8, Layout::nhwc, 3, 0, 0};  // of any size
  spec.codec.kind = CodecSpec::Kind::none;
  spec.fingerprint = "0000000000000000";
  return spec;
}

// Rows whose samples have 1 to 9 rows. Until `wanted` shards are being filled, no row is finished.
class Rows final : public RowSource {
 public:
  Rows(std::size_t most, std::size_t wanted) : most_(most), wanted_(wanted) {}

  std::unique_ptr<RowReader> reader(image::MemoryBudget&) override { return std::make_unique<Reader>(*this); }
  std::size_t most_filling() const override { return most_; }
  std::optional<ShardToFill> next_shard() override {
    const std::lock_guard lock(mutex_);
    if (opened_ == kShards) return std::nullopt;
    most_open_ = std::max(most_open_, ++opened_ - published_);
    return ShardToFill{opened_ - 1, kRows, ShardWriterOptions(small_spec())};
  }
  void published(std::uint64_t shard) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(shard, published_++) << "shards are published in order";
  }
  void stop() noexcept override {}

  std::size_t most_at_once() const { return most_at_once_; }
  std::uint64_t most_open() const { return most_open_; }

 private:
  class Reader final : public RowReader {
   public:
    explicit Reader(Rows& of) : of_(of) {}
    bool take(std::uint64_t shard, std::uint64_t row, InputRow& input) override {
      shard_ = shard;
      index_ = shard * kRows + row;
      input.index = index_;
      input.key = std::to_string(index_);
      return true;
    }
    std::uint64_t read(InputRow&) override {
      of_.begin(shard_);
      return 0;
    }
    void decode(RowSample& sample) override {
      const auto rows = static_cast<std::uint32_t>(index_ % 9 + 1);
      sample_.assign(std::size_t{rows} * 2 * 3, std::byte{static_cast<std::uint8_t>(index_)});
      sample.image = {sample_, rows, 2};
      sample.columns.assign(1, label_);
    }
    void release() noexcept override { of_.end(shard_); }

   private:
    Rows& of_;
    std::uint64_t shard_ = 0;
    std::uint64_t index_ = 0;
    std::vector<std::byte> sample_;
    std::array<std::byte, 8> label_{};
  };

  void begin(std::uint64_t shard) {
    std::unique_lock lock(mutex_);
    at_work_.insert(shard);
    most_at_once_ = std::max(most_at_once_, std::set(at_work_.begin(), at_work_.end()).size());
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return most_at_once_ >= wanted_; });
  }
  void end(std::uint64_t shard) {
    const std::lock_guard lock(mutex_);
    at_work_.erase(at_work_.find(shard));
  }

  const std::size_t most_;
  const std::size_t wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multiset<std::uint64_t> at_work_;  // the shards of rows that threads have
  std::size_t most_at_once_ = 0;
  std::uint64_t opened_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t most_open_ = 0;
};

class SchedulerTest : public ::testing::Test {
 protected:
  void convert(Rows& rows, unsigned threads) {
    Options options;
    options.out = dir_.path();
    options.jobs = threads;
    Summary summary;
    convert_rows(rows, options, {}, {}, summary);
    EXPECT_EQ(summary.converted, kShards * kRows);
    EXPECT_EQ(summary.converted_shards, kShards);
    for (std::uint64_t s = 0; s < kShards; ++s) {
      const ShardReader shard = ShardReader::open(dir_.path() / shard_name(s));
      ASSERT_EQ(shard.size(), kRows);
      std::vector<std::byte> scratch;
      for (std::uint64_t row = 0; row < kRows; ++row) {
        EXPECT_EQ(shard.key(row), std::to_string(s * kRows + row));
        EXPECT_EQ(shard.images().spec_of(row).height, (s * kRows + row) % 9 + 1);
        shard.verify_sample(row, scratch);
      }
    }
  }
  testing::TempDir dir_;
};

TEST_F(SchedulerTest, FillsAsManyShardsAtOnceAsTheSourceAllows) {
  Rows rows(4, 4);
  convert(rows, 8);
  EXPECT_GE(rows.most_at_once(), 4U);  // and the last rows of others
  EXPECT_LE(rows.most_open(), 8U);
}

TEST_F(SchedulerTest, FillsOneShardAfterTheOtherWhereTheirRowsFollowEachOther) {
  Rows rows(1, 1);
  convert(rows, 8);
  EXPECT_LE(rows.most_open(), 2U);
}

TEST_F(SchedulerTest, OneThreadFillsSeveralShards) {
  Rows rows(3, 1);
  convert(rows, 1);
  EXPECT_LE(rows.most_open(), 6U);
}

}  // namespace
}  // namespace shard::convert
