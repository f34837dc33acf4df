// The shards that are registered with the device, under a budget of bytes. A thread of its own registers
// those that the order comes to, and evicts those that are not needed any longer to make room for them; the
// feeder takes what is there by now.
//
// A shard is registered in pieces. While a piece is, no other thread gets into CUDA, also not between two
// calls (H200: 10 batches a second, for 20 GB/s of locking); so each piece is followed by a pause of kPauses
// times as long, unless a batch waits for its shard.
//
//   absent ──▶ changing ──▶ registered ──▶ changing ──▶ absent
//                  │                       (neither used nor wanted, or, for one that is waited for, wanted)
//                  └──▶ refused            (until it is waited for, or retry_refused())
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/loader/device.hpp"

namespace shard {

// One thread, the feeder, calls; bytes(), holds_all() and remark() may be called by any. The end of a shard's
// registration is not waited for when this ends: it is stopped between two pieces.
class RegisteredShards {
 public:
  // Registers the begin of the first shard for a moment: a platform that refuses says so now. Errors: io,
  // corrupt, unsupported, resource.
  RegisteredShards(Dataset dataset, std::shared_ptr<Device> device, std::uint64_t budget_bytes);
  // The same with a budget that may change: `budget_bytes` is asked before each registration, on a thread of
  // its own. What is registered stays so when the budget falls, until its room is needed.
  RegisteredShards(Dataset dataset, std::shared_ptr<Device> device,
                   std::function<std::uint64_t()> budget_bytes);
  RegisteredShards(const RegisteredShards&) = delete;
  RegisteredShards& operator=(const RegisteredShards&) = delete;

  // True: the shard's images are registered, and stay so until release(). Waits for nothing.
  bool try_use(std::uint32_t shard);
  // The same, but registers the shard before any other, and waits for that; one that was refused is tried
  // again. `stopping` is asked every few milliseconds, and ends the wait. Errors: io, corrupt, unsupported,
  // resource, cancelled.
  void use(std::uint32_t shard, const std::function<bool()>& stopping = {});
  // Ends one use of each; the device reads them until `done`.
  void release(std::span<const std::uint32_t> shards, const Event& done);
  // Shards that are needed from now on, in this order; replaces what was said before.
  void prefetch(std::vector<std::uint32_t> shards);

  // Shards that were refused are tried again, in their turn: memory may be free by now, or the file whole. A
  // platform that still refuses does so once for all of them.
  void retry_refused();

  std::uint64_t bytes() const;
  bool holds_all() const;  // every shard of the data set is registered
  // How many shards were refused and why; empty: none.
  std::string remark() const;
  double waited_seconds() const noexcept { return waited_seconds_; }  // in use()

 private:
  enum class State : std::uint8_t { absent, changing, registered, refused };
  struct Entry {
    State state = State::absent;
    bool wanted = false;          // by prefetch()
    bool retried = false;         // absent: it was refused before
    std::uint32_t users = 0;      // try_use() and use() without their release()
    std::uint64_t last_used = 0;  // the larger, the later
    Event last_use;
    std::uint64_t bytes = 0;                            // registered
    std::vector<std::unique_ptr<Registration>> pieces;  // of DeviceInfo::registration_piece_bytes
    std::exception_ptr error;                           // refused
  };
  using Lock = std::unique_lock<std::mutex>;

  void wake();
  void work(const std::stop_token& stop);
  std::optional<std::uint32_t> next();
  std::vector<std::unique_ptr<Registration>> register_images(const ShardReader& shard,
                                                             std::span<const std::byte> images,
                                                             const std::stop_token& stop);
  void pause(double piece_seconds, const std::stop_token& stop);
  void register_next(Lock& lock, std::uint32_t shard, const std::stop_token& stop);
  bool make_room(Lock& lock, std::uint32_t shard, std::uint64_t bytes);
  void evict(Lock& lock, std::uint32_t shard);
  void add_user(Entry& entry);
  void refuse_again(const std::exception_ptr& error);

  const Dataset dataset_;
  const std::shared_ptr<Device> device_;
  const std::function<std::uint64_t()> ask_budget_;
  double waited_seconds_ = 0;  // feeder

  mutable std::mutex mutex_;  // not held while a shard is registered or evicted
  std::condition_variable_any changed_;
  std::vector<Entry> shards_;
  std::vector<std::uint32_t> wanted_;    // by prefetch()
  std::size_t next_wanted_ = 0;          // those before it are registered or refused
  std::optional<std::uint32_t> urgent_;  // use() waits for it
  bool no_room_ = false;                 // until something changes
  std::uint64_t uses_ = 0;
  std::uint64_t budget_ = 0;          // as it was asked last
  std::uint64_t reserved_bytes_ = 0;  // registered and being registered: what the budget bounds
  std::uint64_t bytes_ = 0;           // registered
  std::size_t registered_ = 0;
  std::size_t refused_ = 0;
  std::string refusal_;  // the last one
  std::jthread thread_;  // last: ends before the rest goes; started when there is something to do
};

}  // namespace shard
