// Gives the rows of a source to workers, and publishes each shard when its last row is done, in order.
//
//   next() -> Item -> [read, decode, store] -> done(item)        F shards are filled, at most 2 F are open
//                                             `- last one -> publisher thread: publish, receipt
//
// F is RowSource::most_filling(). A row is taken of the shard that has the fewest workers.
//
// Memory is bounded in two ways. While 2 F shards are open, the next one is opened only after one was
// published. And no worker runs more than `window` rows ahead of the slowest one, nor while 1 GiB of frames
// waits in memory, as frames do until those before them are written.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "convert/engine/row_source.hpp"

namespace shard::convert {

struct ShardJob {
  ShardJob(ShardToFill&& shard, ShardWriter shard_writer)
      : number(shard.number), rows(shard.rows), expected(shard.expected), writer(std::move(shard_writer)) {}

  const std::uint64_t number;
  const std::uint64_t rows;
  const ShardSummary* const expected;
  ShardWriter writer;
  std::deque<InputRow> inputs;  // of each row that was taken; set by the thread that has the row
  std::atomic<std::uint64_t> stored{0};
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, Reject>> rejects;  // by row, guarded by mutex
  image::WarningCounts warnings;                          // guarded by mutex
  JpegCounts jpeg;                                        // guarded by mutex
  // Guarded by the scheduler's mutex.
  std::uint64_t taken = 0;
  std::uint64_t done = 0;
  bool ended = false;  // no more rows follow
  bool full() const noexcept { return ended && done == taken; }
};

struct Item {
  ShardJob* job = nullptr;
  std::uint64_t row = 0;  // of the shard
  InputRow* input = nullptr;
  std::uint64_t ticket = 0;
};

class Scheduler {
 public:
  // All references must outlive the scheduler.
  Scheduler(RowSource& source, const Options& options, const PlanRecord& record, const Hooks& hooks);
  ~Scheduler();  // stops and joins; the files of shards that were not published are removed

  // The next row, which `reader` has taken. Nothing if all were given out or the run stops. Blocks while no
  // further shard may be opened, while the caller is too far ahead, and while the source has no row yet.
  std::optional<Item> next(RowReader& reader);
  void done(const Item& item);
  // Ends the run. finish() throws the first error.
  void fail(std::exception_ptr error);
  // Call it after the workers have ended. Waits for the publisher, then throws the first error.
  void finish();

  // Shards that were published. After finish().
  std::uint64_t published() const noexcept { return published_; }
  double publish_seconds() const noexcept { return publish_seconds_; }  // after finish()
  double wait_seconds() const noexcept { return wait_seconds_; }        // likewise

 private:
  bool stopped() const noexcept;  // with mutex_ held
  // With turn_ held. False: the run ends, or no shard follows.
  bool wait_for_room();
  bool open_shard();
  ShardJob* shard_to_fill();      // null: none is left
  void end_shard(ShardJob& job);  // its rows end before they fill it
  std::optional<Item> hand_out(ShardJob& job, InputRow& input, double waited);
  void publish_loop();
  void publish(ShardJob& job);
  static void publish_expected(ShardJob& job);

  RowSource& source_;
  const Options& options_;
  const PlanRecord& record_;
  const Hooks& hooks_;
  const std::uint64_t window_;
  const std::size_t most_filling_;

  std::mutex turn_;  // guards the next two; rows of a shard are taken one at a time, in their order
  std::vector<ShardJob*> filling_;
  bool all_opened_ = false;  // the source has no further shard

  std::mutex mutex_;                            // guards all below
  std::condition_variable may_take_;            // a shard was published, a row was done, or the run stops
  std::condition_variable may_publish_;         // a shard is full, no further one follows, or the run stops
  std::deque<std::unique_ptr<ShardJob>> open_;  // in order
  std::uint64_t tickets_ = 0;
  std::set<std::uint64_t> active_;  // tickets handed out and not done
  bool all_handed_out_ = false;
  bool stop_ = false;
  std::exception_ptr error_;
  double publish_seconds_ = 0;
  double wait_seconds_ = 0;
  std::uint64_t published_ = 0;
  std::thread publisher_;
};

}  // namespace shard::convert
