// ShardTurns: for each shard one thread at a time. Thread safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <stop_token>
#include <utility>

namespace shard {

class ShardTurns {
 public:
  // Must not outlive what made it.
  class Turn {
   public:
    Turn(ShardTurns& turns, std::uint32_t shard) noexcept : turns_(&turns), shard_(shard) {}
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)), shard_(other.shard_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn();

   private:
    ShardTurns* turns_;
    std::uint32_t shard_;
  };
  // Waits until no other thread has the turn of this shard. Errors: cancelled.
  Turn wait(std::uint32_t shard, const std::stop_token& stop);

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::set<std::uint32_t> taken_;
};

}  // namespace shard
