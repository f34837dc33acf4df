// Gives samples to workers, shard by shard, and publishes a shard when its last sample is done.
//
//   next() -> Item -> [decode] -> done(item)        at most kShardsInFlight shards are open
//                                   `- last one -> publisher thread: publish, receipt
//
// Memory is bounded in two ways. While two shards are open, the next one is opened only after one was
// published. And no worker runs more than `window` samples ahead of the slowest one, because frames of codecs
// with variable size wait in memory until the frames before them are written.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "convert/plan/plan.hpp"
#include "convert/publish/journal.hpp"
#include "convert/publish/shard_claims.hpp"
#include "shard/convert/convert.hpp"

namespace shard::convert {

struct ShardJob {
  explicit ShardJob(ShardWriter shard_writer) : writer(std::move(shard_writer)) {}

  ShardWriter writer;
  std::uint64_t shard = 0;
  std::uint64_t first = 0;  // index of its first input
  std::uint64_t count = 0;
  std::atomic<std::uint64_t> left{0};
  std::atomic<std::uint64_t> stored{0};
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, Reject>> rejects;  // by index, guarded by mutex
  image::WarningCounts warnings;                          // guarded by mutex
  std::vector<std::optional<std::uint64_t>> digests;      // of each input that could be read; each set once
};

struct Item {
  ShardJob* job = nullptr;
  std::uint64_t index = 0;  // of the input
  std::uint64_t ticket = 0;
};

class Scheduler {
 public:
  // `todo`: the shards to convert, in order. A shard that another process finishes before its turn is
  // skipped. `missing`: the shards that a complete data set has lost; what is converted must be equal to
  // them. Empty if the data set is not complete. `claim`: other processes have the same shards to convert;
  // each is converted by the one that locks it. All references must outlive the scheduler.
  Scheduler(const Plan& plan, const Options& options, const PlanRecord& record,
            const ShardWriterOptions& writer, std::vector<std::uint64_t> todo,
            const std::map<std::uint64_t, ShardSummary>& missing, bool claim, const Hooks& hooks);
  ~Scheduler();  // stops and joins; the files of shards that were not published are removed

  // The next sample. Nothing if all were given out or the run stops. Blocks while no further shard may be
  // opened, and while the caller is too far ahead.
  std::optional<Item> next();
  void done(const Item& item);
  // Ends the run. finish() throws the first error.
  void fail(std::exception_ptr error);
  bool stopped() const noexcept;
  // Whether the run ends, because it was stopped or failed.
  bool ends();
  // Call it after the workers have ended. Waits for the publisher, then throws the first error.
  void finish();

  // Shards that were published. After finish().
  std::uint64_t published() const noexcept { return published_; }
  double publish_seconds() const noexcept { return publish_seconds_; }  // after finish()
  std::uint64_t wait_nanoseconds() const noexcept { return wait_nanoseconds_; }

 private:
  // With mutex_ held: next_shard_ is the next shard to convert. False: there is none, or none yet.
  bool find_shard();
  bool find_claimed();
  bool is_finished(std::uint64_t shard) const;
  void count_resumed(std::uint64_t shard);
  void open_next_shard();  // with mutex_ held
  void publish_loop();
  void publish(ShardJob& job);
  void publish_missing(ShardJob& job);  // of a complete data set
  void announce(const ShardJob& job) const;

  const Plan& plan_;
  const Options& options_;
  const PlanRecord& record_;
  const ShardWriterOptions& writer_options_;
  const std::vector<std::uint64_t> todo_;
  const std::map<std::uint64_t, ShardSummary>& missing_;
  const Hooks& hooks_;
  const std::uint64_t window_;

  std::mutex mutex_;
  std::condition_variable may_open_;             // a shard was published, a sample was done, or the run stops
  std::condition_variable may_publish_;          // a shard is full, or the run stops
  std::vector<std::unique_ptr<ShardJob>> open_;  // in flight
  std::deque<ShardJob*> full_;
  ShardJob* current_ = nullptr;
  std::uint64_t current_next_ = 0;  // next sample in the current shard
  std::size_t todo_next_ = 0;
  std::optional<std::uint64_t> next_shard_;
  std::optional<ShardClaims> claims_;
  bool out_of_shards_ = false;
  std::uint64_t tickets_ = 0;
  std::set<std::uint64_t> active_;  // tickets handed out and not done
  bool all_handed_out_ = false;
  bool stop_ = false;
  std::exception_ptr error_;
  double publish_seconds_ = 0;
  std::uint64_t published_ = 0;
  std::atomic<std::uint64_t> wait_nanoseconds_{0};
  std::thread publisher_;
};

}  // namespace shard::convert
