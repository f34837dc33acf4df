// ShardFiller: threads that bring the shards of a data set on servers to this machine,
// as a ShardSchedule says.
//
// An order that goes shard by shard (sequential, windowed, by_shard) waits for the shards of its next batch.
// A global shuffle, which needs all shards at once, does not wait: until a shard is here, its samples are
// requested one by one. A shard that cannot be brought, because there is no room or its server fails, is read
// in that way too, so an error reaches the batch that needs it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/system/stopwatch.hpp"
#include "format/dataset/shard_store.hpp"
#include "prefetch/fill_width.hpp"
#include "prefetch/shard_schedule.hpp"
#include "setup/loader_setup.hpp"
#include "shard/loader/stats.hpp"

namespace shard {

// The feeder's thread calls the members.
class ShardFiller {
 public:
  explicit ShardFiller(const LoaderSetup& setup);
  ShardFiller(const ShardFiller&) = delete;
  ShardFiller& operator=(const ShardFiller&) = delete;
  ~ShardFiller();  // stops and joins the threads, and empties the transit area

  // Whether before_batch() will not wait for what earlier batches, which are not over, hold.
  bool ready(std::uint64_t epoch, std::uint64_t index);
  // Before batch `index` is made of these shards. At the first call the threads start.
  // Returns soon after stopping() is true.
  void before_batch(std::uint64_t epoch, std::uint64_t index, const std::vector<std::uint32_t>& shards,
                    const std::function<bool()>& stopping);
  // After the samples of this batch and of all before it have been read, or will have been at `read`.
  void after_batch(std::uint64_t epoch, std::uint64_t index, Event read);
  // Instead, if it failed: nothing reads for it any more.
  void give_up_batch(std::uint64_t epoch, std::uint64_t index);

  // Those of whole shards, and what kept one from coming here. From any thread.
  LoaderStats stats() const;

 private:
  // As many as shards are brought at a time. mutex_ is held.
  void start_threads();
  // And the others of the data set that are the same shard, whose coming and going is theirs too.
  std::vector<std::uint32_t> with_twins(const std::vector<std::uint32_t>& shards) const;
  void work(const std::stop_token& stop);
  std::optional<ShardSchedule::Job> next();
  void prepare(std::uint32_t shard, std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
  void done(const ShardSchedule::Job& job, ShardSchedule::Result result);
  // `read`: when what a shard that leaves was needed for is over.
  ShardSchedule::Result carry_out(const ShardSchedule::Job& job, const Event& read,
                                  const std::stop_token& stop) const noexcept;
  void keep_problem(const char* problem, const std::stop_token& stop) const noexcept;

  const LoaderSetup& setup_;
  const ShardStore store_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> twins_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  ShardSchedule schedule_;
  FillWidth width_;
  unsigned coming_ = 0;   // shards that a thread has taken,
  unsigned copying_ = 0;  // and of these, those that are being brought
  Stopwatch watch_;
  mutable LoaderStats stats_;
  Event read_;  // of the last batch
  bool ending_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace shard
