// ShardFiller: threads that bring the shards of a data set on servers into the cache, in the order in which batches need them.
//
// An order that goes shard by shard (sequential, windowed, by_shard) waits for the shards of its next batch. A global shuffle, which needs all
// shards at once, does not wait: until a shard is here, its samples are requested one by one. A shard that cannot be brought, because there is
// no room or its server fails, is read in that way too, so an error reaches the batch that needs it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "loader_setup.hpp"

namespace shard {

// The feeder's thread calls the members.
class ShardFiller {
 public:
  explicit ShardFiller(const LoaderSetup& setup);
  ShardFiller(const ShardFiller&) = delete;
  ShardFiller& operator=(const ShardFiller&) = delete;
  ~ShardFiller();  // stops and joins the threads

  // Before batch `index` is made of these shards. At the first call the threads start. Returns soon after stopping() is true.
  void before_batch(std::uint64_t epoch, std::uint64_t index, const std::vector<std::uint32_t>& shards,
                    const std::function<bool()>& stopping);

 private:
  enum class State : std::uint8_t { pending, working, over };
  void start(std::uint64_t epoch, std::uint64_t index);
  void work(const std::stop_token& stop);

  const LoaderSetup& setup_;
  const bool waits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<State> states_;        // of each shard
  std::deque<std::uint32_t> queue_;  // next first; may name shards that are over
  std::vector<std::jthread> threads_;
};

}  // namespace shard
