// The shards that are registered with the device, under a budget of bytes. Those that the order comes to next
// are registered ahead, on a thread of their own; those not needed any longer make room.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/loader/device.hpp"

namespace shard {

// begin_batch, use, end_batch and ahead: one thread, the feeder.
class RegisteredShards {
 public:
  RegisteredShards(std::shared_ptr<const Dataset> dataset, std::shared_ptr<Device> device,
                   std::uint64_t budget_bytes);
  RegisteredShards(const RegisteredShards&) = delete;
  RegisteredShards& operator=(const RegisteredShards&) = delete;

  // Shards used between the two stay registered until `done`.
  void begin_batch();
  // The shard's images are resident and registered when it returns. Errors: io, unsupported, resource.
  void use(std::uint32_t shard);
  void end_batch(const Event& done);
  // Shards that are needed from now on, in this order; replaces what was said before. Failures surface when
  // the shard is used.
  void ahead(std::vector<std::uint32_t> shards);

  std::uint64_t bytes() const;
  std::uint64_t waited_nanoseconds() const;  // use() on shards that were not there yet

 private:
  struct Entry {
    std::unique_ptr<Registration> registration;
    std::uint64_t bytes = 0;
    std::uint64_t batch = 0;  // the last one that used it
    Event last_use;
    std::list<std::uint32_t>::iterator recency;
  };
  enum class Room : std::uint8_t { made, none, later };
  using Lock = std::unique_lock<std::mutex>;

  void work(const std::stop_token& stop);
  bool next_ahead(std::uint32_t& shard) const;
  void add(Lock& lock, std::uint32_t shard, std::uint64_t bytes);
  Room make_room(Lock& lock, std::uint64_t bytes, bool may_take_wanted);
  void give_up(Lock& lock, std::uint32_t shard);
  std::uint64_t images_bytes(std::uint32_t shard) const;

  const std::shared_ptr<const Dataset> dataset_;
  const std::shared_ptr<Device> device_;
  const std::uint64_t budget_;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::unordered_map<std::uint32_t, Entry> registered_;
  std::list<std::uint32_t> recency_;     // least recently used first
  std::set<std::uint32_t> changing_;     // being registered or given up, without the mutex
  std::vector<std::uint32_t> wanted_;    // ahead
  std::set<std::uint32_t> failed_;       // ahead, until they are used
  std::vector<std::uint32_t> in_batch_;  // since begin_batch
  std::uint64_t batch_ = 0;
  bool blocked_ = false;  // ahead: no room until something changes
  std::uint64_t bytes_ = 0;
  std::uint64_t waited_nanoseconds_ = 0;
  std::jthread thread_;  // last: ends before the rest goes; started by the first ahead()
};

}  // namespace shard
