// Which shard a process takes next, if any number of processes share a conversion (Options::claim).
//
//   take() -> a shard that is not finished and at which nobody works; it is locked
//          -> wait: other processes work at all that are left. If one of them dies, its shard is free again
//          -> none: all are finished, or nothing has happened in OUT for half an hour
//
// Each process tries the shards in an order of its own, at random: where locks exclude nobody, two processes
// seldom make the same shard. If they do, one of the two equal files stays.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "convert/publish/folder_lock.hpp"

namespace shard::convert {

// Not thread safe.
class ShardClaims {
 public:
  enum class Found : std::uint8_t { shard, wait, none };

  // `lock_file`: conversion.json of `out`, or dataset.json. `todo`: the shards that were not finished at the
  // start. `finished`: another process has finished a shard. `on_finished` is called for each such shard.
  ShardClaims(const std::filesystem::path& out, const std::filesystem::path& lock_file,
              std::vector<std::uint64_t> todo, std::function<bool(std::uint64_t)> finished,
              std::function<void(std::uint64_t)> on_finished);

  // Errors: io.
  Found take(std::uint64_t& shard);
  // The shard is published.
  void release(std::uint64_t shard) noexcept { locks_.unlock(shard); }

 private:
  using Clock = std::chrono::steady_clock;
  bool nothing_happens();
  void drop_finished();

  std::filesystem::path out_;
  std::vector<std::uint64_t> todo_;
  std::function<bool(std::uint64_t)> finished_;
  std::function<void(std::uint64_t)> on_finished_;
  ShardLocks locks_;
  Clock::time_point next_look_;
  Clock::time_point next_sweep_;
  Clock::time_point last_change_;
  std::filesystem::file_time_type seen_;
};

}  // namespace shard::convert
