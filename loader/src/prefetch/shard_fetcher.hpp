// ShardFetcher: threads that fetch the shards of a data set on servers, as a ShardSchedule says.
//
// An order that goes shard by shard (sequential, windowed, by_shard) waits for the shards of its next batch.
// A global shuffle, which needs all shards at once, does not wait: until a shard is fetched, its samples are
// requested one by one. A shard that cannot be fetched, because there is no room or its server fails, is read
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
#include "prefetch/fetch_width.hpp"
#include "prefetch/shard_schedule.hpp"
#include "setup/loader_setup.hpp"
#include "shard/loader/stats.hpp"

namespace shard {

// The feeder's thread calls the members.
class ShardFetcher {
 public:
  explicit ShardFetcher(const LoaderSetup& setup);
  ShardFetcher(const ShardFetcher&) = delete;
  ShardFetcher& operator=(const ShardFetcher&) = delete;
  ~ShardFetcher();  // stops and joins the threads, and empties the transit area

  // False: before_batch() would wait for room that earlier batches, which are not over, hold.
  bool ready(std::uint64_t epoch, std::uint64_t index);
  // Waits until batch `index` can be made of these shards. The first call starts the threads. Throws
  // cancelled soon after stopping() is true.
  void before_batch(std::uint64_t epoch, std::uint64_t index, const std::vector<std::uint32_t>& shards,
                    const std::function<bool()>& stopping);
  // The samples of this batch and of all before it have been read, or will have been at `read`.
  void after_batch(std::uint64_t epoch, std::uint64_t index, Event read);
  // Instead of after_batch(), if the batch failed: nothing reads for it any more.
  void abandon_batch(std::uint64_t epoch, std::uint64_t index);

  // Of whole shards, and what kept one from being fetched. From any thread.
  LoaderStats stats() const;

 private:
  // One for each shard that is fetched at once, and kAhead more. mutex_ is held.
  void start_threads();
  // And their aliases: what is fetched or evicted for one number is so for all.
  std::vector<std::uint32_t> with_aliases(const std::vector<std::uint32_t>& shards) const;
  void work(const std::stop_token& stop);
  std::optional<ShardSchedule::Job> next();
  void prepare(std::uint32_t shard, std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
  void done(const ShardSchedule::Job& job, ShardSchedule::Result result);
  // `read`: when nothing reads an evicted shard any more.
  ShardSchedule::Result carry_out(const ShardSchedule::Job& job, const Event& read,
                                  const std::stop_token& stop) const noexcept;
  void keep_problem(const char* problem, const std::stop_token& stop) const noexcept;

  const LoaderSetup& setup_;
  const ShardStore store_;
  // By shard: all its numbers in the data set, if there are several.
  std::map<std::uint32_t, std::vector<std::uint32_t>> aliases_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  ShardSchedule schedule_;
  FetchWidth width_;
  unsigned taken_ = 0;     // shards that a thread has taken to fetch
  unsigned fetching_ = 0;  // those of them whose samples are being fetched
  Stopwatch watch_;
  mutable LoaderStats stats_;
  Event read_;  // of the last batch
  bool ending_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace shard
