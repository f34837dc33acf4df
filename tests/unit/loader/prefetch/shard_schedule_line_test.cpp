// ShardSchedule with a line of limited rate, a cache of half of the data and a consumer that takes time:
// simulated, event by event.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "prefetch/fetch_width.hpp"
#include "prefetch/shard_schedule.hpp"

namespace shard {
namespace {

using Job = ShardSchedule::Job;
using Kind = Job::Kind;
using Result = ShardSchedule::Result;

constexpr std::uint64_t kSlots = 5;  // batches that are made ahead, and the one that is consumed
constexpr std::uint64_t kSampleBytes = 1000;
constexpr std::uint64_t kBatch = 16;

struct Epoch {
  double seconds = 0;
  double fetched = 0;  // bytes
  double by_range = 0;
};

// A second is what the consumer needs for the samples of a byte:
// an epoch takes as many seconds as there are bytes, if nothing is waited for.
class Line {
 public:
  // `shard_rate`: of one shard, at most.
  Line(const std::vector<std::uint64_t>& samples, std::uint32_t window, double bytes_per_second,
       double shard_rate = std::numeric_limits<double>::infinity())
      : begins_(samples.size() + 1),
        bytes_(samples),
        order_(samples, options(window)),
        rate_(bytes_per_second),
        shard_rate_(shard_rate) {
    std::partial_sum(samples.begin(), samples.end(), begins_.begin() + 1);
    for (std::uint64_t& bytes : bytes_) bytes *= kSampleBytes;
    room_ = all() / 2;
    schedule_.emplace(order_, bytes_, true, 2 * window * *std::max_element(bytes_.begin(), bytes_.end()));
  }

  std::uint64_t all() const { return begins_.back() * kSampleBytes; }

  std::vector<Epoch> run(std::uint64_t epochs) {
    std::vector<Epoch> found;
    Epoch before;
    while (consumed_ < epochs * order_.batches()) {
      while (feed() || fetch()) {
      }
      if (!consuming_ && ready_ > 0) {
        --ready_;
        consuming_ = true;
        over_ = now_ + static_cast<double>(sizes_[consumed_]) * kSampleBytes;
      }
      advance();
      if (consuming_ || consumed_ % order_.batches() != 0 || consumed_ / order_.batches() == found.size())
        continue;
      found.push_back({now_ - before.seconds, fetched_ - before.fetched, by_range_ - before.by_range});
      before = {now_, fetched_, by_range_};
    }
    return found;
  }

 private:
  struct Fetch {
    Job job;
    double left;  // bytes
  };

  static OrderOptions options(std::uint32_t window) {
    OrderOptions made;
    made.order = OrderMode::windowed;
    made.window_shards = window;
    made.batch_size = kBatch;
    made.tail = Tail::short_;
    made.seed = 3;
    return made;
  }

  // Begins a batch, or makes the one that was begun.
  bool feed() {
    if (made_ - consumed_ >= kSlots) return false;
    const std::uint64_t epoch = made_ / order_.batches();
    const std::uint64_t index = made_ % order_.batches();
    BatchIndices batch;
    order_.batch(epoch, index, batch);
    std::vector<std::uint32_t> shards;
    for (const std::uint64_t sample : batch.samples)
      shards.push_back(static_cast<std::uint32_t>(std::upper_bound(begins_.begin(), begins_.end(), sample) -
                                                  begins_.begin() - 1));
    if (!begun_) {
      const std::set<std::uint32_t> each(shards.begin(), shards.end());
      schedule_->start_batch(epoch, index, {each.begin(), each.end()});
    }
    begun_ = !std::all_of(shards.begin(), shards.end(),
                          [&](std::uint32_t shard) { return schedule_->readable(shard); });
    if (begun_) return false;
    for (const std::uint32_t shard : shards)
      by_range_ += fetched_shards_.contains(shard) ? 0.0 : kSampleBytes;
    schedule_->end_batch(epoch, index);
    sizes_.push_back(batch.samples.size());
    ++made_;
    ++ready_;
    return true;
  }

  bool fetch() {
    if (running_.size() >= width_.now()) return false;
    const auto job = schedule_->next();
    if (!job) {
      width_.paused();
      return false;
    }
    const std::uint64_t bytes = bytes_[job->shard];
    if (job->kind == Kind::evict) fetched_shards_.erase(job->shard);
    const bool no_room = job->kind == Kind::fetch_to_cache && bytes > room_;
    if (job->kind == Kind::evict || no_room) {
      schedule_->done(*job, no_room ? Result::no_room : Result::done);
      return true;
    }
    if (job->kind == Kind::fetch_to_cache) room_ -= bytes;
    running_.push_back({*job, static_cast<double>(bytes)});
    return true;
  }

  // To the end of what the consumer does, or of a fetch. All fetches share the line.
  void advance() {
    double step = consuming_ ? over_ - now_ : std::numeric_limits<double>::infinity();
    const double share = std::min(rate_ / static_cast<double>(running_.size()), shard_rate_);
    for (const Fetch& fetch : running_) step = std::min(step, fetch.left / share);
    ASSERT_LT(step, std::numeric_limits<double>::infinity()) << "nothing would ever happen again";
    now_ += step;
    if (!running_.empty()) received_ += step * share * static_cast<double>(running_.size());
    for (std::size_t i = 0; i < running_.size();) {
      running_[i].left -= step * share;
      if (running_[i].left > 1e-6) {
        ++i;
        continue;
      }
      const Job job = running_[i].job;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      fetched_ += static_cast<double>(bytes_[job.shard]);
      fetched_shards_.insert(job.shard);
      // An epoch of the consumer is ten seconds.
      width_.arrived(static_cast<std::uint64_t>(received_), 10 * now_ / static_cast<double>(all()));
      schedule_->done(job, Result::done);
    }
    if (consuming_ && over_ - now_ < 1e-6) {
      consuming_ = false;
      ++consumed_;
    }
  }

  std::vector<std::uint64_t> begins_, bytes_;
  Order order_;
  double rate_, shard_rate_;
  FetchWidth width_;
  std::uint64_t room_ = 0;  // in the cache
  std::optional<ShardSchedule> schedule_;
  std::vector<Fetch> running_;
  std::set<std::uint32_t> fetched_shards_;
  std::deque<std::uint64_t> sizes_;  // of batches that were made
  std::uint64_t made_ = 0, ready_ = 0, consumed_ = 0;
  bool begun_ = false, consuming_ = false;
  double now_ = 0, over_ = 0, fetched_ = 0, received_ = 0, by_range_ = 0;
};

std::vector<std::uint64_t> uneven(std::size_t shards) {
  std::mt19937 chance(1);
  std::vector<std::uint64_t> samples;
  for (std::size_t i = 0; i < shards; ++i) samples.push_back(8 + chance() % 120);
  return samples;
}

struct Case {
  const char* name;
  std::vector<std::uint64_t> samples;
};

std::vector<Case> cases(std::size_t equal = 63) {
  return {{"equal shards", std::vector<std::uint64_t>(equal, 64)},
          {"200 small shards", std::vector<std::uint64_t>(200, 8)},
          {"80 uneven shards", uneven(80)}};
}

// An even number of equal shards: of 63, half of the bytes are 31, and 32 of 63 are more than 0.505.
TEST(ShardLine, HalfACacheHalvesTheBytes) {
  for (const Case& one : cases(64))
    for (const std::uint32_t window : {2U, 8U}) {
      Line line(one.samples, window, 0.4);
      const std::vector<Epoch> epochs = line.run(10);
      double fetched = 0;
      for (std::size_t i = 1; i < epochs.size(); ++i) {
        fetched += epochs[i].fetched;
        EXPECT_EQ(epochs[i].by_range, 0) << one.name;
      }
      EXPECT_LE(fetched / 9 / static_cast<double>(line.all()), 0.505) << one.name << ", window " << window;
    }
}

// A line of rate 0.5 carries half of the data while the consumer needs all of it: then every run of cached
// shards that is longer than what the transit area takes costs time. (Fetched one shard at a time, that is 6
// % at most; three that share the line come later than one.)
TEST(ShardLine, AnEpochTakesAsLongAsTheConsumerOrTheLine) {
  for (const Case& one : cases())
    for (const std::uint32_t window : {2U, 8U})
      for (const double rate : {0.25, 0.33, 0.5, 0.67, 1.0}) {
        Line line(one.samples, window, rate);
        const std::vector<Epoch> epochs = line.run(10);
        const double compute = 9 * static_cast<double>(line.all());
        double took = 0, wire = 0;
        for (std::size_t i = 1; i < epochs.size(); ++i) {
          took += epochs[i].seconds;
          wire += epochs[i].fetched / rate;
        }
        EXPECT_LE(took / std::max(compute, wire), rate == 0.5 ? 1.13 : 1.05)
            << one.name << ", window " << window << ", rate " << rate;
      }
}

// Three shards at a time would take four times as long.
TEST(ShardLine, MoreShardsAtATimeWhereEachIsHeldUp) {
  for (const Case& one : cases()) {
    constexpr double kRate = 0.5;
    Line line(one.samples, 8, kRate, kRate / 12);
    double took = 0, wire = 0;
    for (const Epoch& epoch : line.run(10)) {
      took += epoch.seconds;
      wire += epoch.fetched / kRate;
    }
    EXPECT_LE(took / wire, 2.5) << one.name;
  }
}

}  // namespace
}  // namespace shard
