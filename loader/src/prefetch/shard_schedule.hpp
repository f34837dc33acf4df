// ShardSchedule: which shard of a data set on servers is fetched next, and when it may be evicted. It decides
// and does nothing itself.
//
//   unknown --fetch to cache--> cached      or a local file: it stays
//      |  no cache, or no room in it
//      v
//   uncached --fetch to transit--> in transit --evict--> uncached      each time that it is needed
//
// A shard that a batch in progress reads is never evicted, whatever it was fetched for: batches may read
// shards where they are mapped.
//
// The shards are requested in the order in which batches need them, over the end of an epoch into the first
// window of the next one, as far as the transit area has room. What does not fit there is read by range. A
// shard is evicted when the last batch that needs it is over.
//
// Where a consumer begins, nothing is fetched yet. There the first batches are read by range instead of
// waiting for whole shards, as long as that is a small part of these shards' bytes.
//
// Not thread safe. The order must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <tuple>
#include <vector>

#include "shard/loader/order.hpp"

namespace shard {

class ShardSchedule {
 public:
  // `shard_bytes`: the size of each shard's file. `transit_bytes`: of the shards in the transit area at most;
  // 0: there is none.
  ShardSchedule(const Order& order, std::vector<std::uint64_t> shard_bytes, bool cache,
                std::uint64_t transit_bytes);

  // A place in the order of an epoch.
  struct Turn {
    std::uint64_t epoch = 0;
    std::size_t place = 0;
    friend bool operator<(const Turn& a, const Turn& b) {
      return std::tie(a.epoch, a.place) < std::tie(b.epoch, b.place);
    }
  };
  struct Job {
    enum class Kind : std::uint8_t { fetch_to_cache, fetch_to_transit, evict } kind;
    std::uint32_t shard;
    std::optional<Turn> turn;  // that needs it; none: a later epoch
  };
  // What can be done now. Each job must be reported by done(). Jobs may be carried out at the same time. Not
  // `fetches`: evictions only.
  std::optional<Job> next(bool fetches = true);
  enum class Result : std::uint8_t { done, no_room, failed };
  void done(const Job& job, Result result);

  // In the order of the batches, or from any other batch on. The batches between are over or abandoned.
  // `shards`: those that the batch reads, each once.
  void start_batch(std::uint64_t epoch, std::uint64_t index, const std::vector<std::uint32_t>& shards);
  // Whether the batch that was started last can read this shard without waiting: in the cache, in transit or
  // by range. Right if all batches before that one are over. False while the shard is being evicted.
  bool readable(std::uint32_t shard) const;
  // It must not be read where it is mapped.
  bool evicting(std::uint32_t shard) const { return shards_[shard].state == State::evicting; }
  // This batch and all before it have been read.
  void end_batch(std::uint64_t epoch, std::uint64_t index);
  // This batch failed, and nothing reads for it any more. Nothing happens if it was not started.
  void abandon_batch(std::uint64_t epoch, std::uint64_t index);
  // Whether a batch can be started without waiting while earlier ones are not over, which hold room.
  bool ready(std::uint64_t epoch, std::uint64_t index) const;

  // The shards in the transit area that no job fetches or evicts.
  std::vector<std::uint32_t> in_transit() const;
  std::uint64_t transit_bytes() const noexcept { return transit_bytes_; }  // now
  std::uint64_t passed_bytes() const noexcept { return passed_bytes_; }

 private:
  enum class State : std::uint8_t { unknown, fetching, cached, uncached, in_transit, evicting };
  struct Shard {
    std::uint64_t bytes = 0;
    State state = State::unknown;
    std::optional<Turn> needed{};  // the last turn that it was or is fetched for
    std::uint32_t batches = 0;     // that were started and are not over, and read it
  };
  // The order of an epoch.
  struct Plan {
    std::uint64_t epoch = 0;
    std::vector<std::uint32_t> shards;
    std::size_t first_window = 0;     // its end
    std::vector<std::size_t> places;  // by shard; kNowhere: it is not read in this epoch
  };
  struct Batch {
    std::uint64_t epoch = 0;
    std::uint64_t index = 0;
    bool operator==(const Batch&) const = default;
  };
  struct Started {
    Batch batch;
    std::vector<std::uint32_t> shards;
  };

  Plan plan(std::uint64_t epoch) const;
  const Plan* plan_of(std::uint64_t epoch) const;
  void start_over(Turn turn, std::size_t window_end);
  Turn turn_after(std::uint64_t epoch, std::uint64_t index) const;
  std::optional<std::uint32_t> at_cursor();
  std::optional<Job> next_in_order();
  Job fetch(Job::Kind kind, std::uint32_t shard, std::optional<Turn> turn);
  void hold(const Batch& batch, const std::vector<std::uint32_t>& shards);
  void release(const Batch& batch);
  bool is_over(const Shard& shard) const { return shard.needed < now_ && shard.batches == 0; }
  void evict(std::uint32_t shard);
  bool fits(const Shard& shard) const noexcept { return shard.bytes <= transit_capacity_ - transit_bytes_; }
  bool settled(std::uint32_t shard, Turn turn) const;
  bool blocked() const;

  const Order& order_;
  const bool walks_;  // by shard
  const bool cache_;
  const std::uint64_t transit_capacity_;
  std::vector<Shard> shards_;
  std::deque<Plan> plans_;         // of the epoch of the last batch and the next one
  std::vector<Started> started_;   // batches that are not over
  std::optional<Batch> expected_;  // the batch after the last one
  Turn now_;                       // the first that batches which are not over need
  Turn cursor_;                    // the next to be requested
  std::size_t other_ = 0;          // shards for later epochs that were looked at
  std::vector<std::uint32_t> in_transit_;
  std::deque<std::uint32_t> to_evict_;
  std::size_t evictions_ = 0;      // that are not done
  std::uint64_t batch_bytes_ = 0;  // of its samples, about
  std::uint64_t cold_bytes_ = 0;   // that may still be read by range where the consumer began
  bool cold_ = false;              // the last batch is read so
  std::uint64_t transit_bytes_ = 0;
  std::uint64_t passed_bytes_ = 0;
};

}  // namespace shard
