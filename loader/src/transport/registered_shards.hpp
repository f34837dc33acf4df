// The shards that are registered with the device, within a budget of bytes. One thread registers the shards
// that the order needs next, and evicts shards that are no longer needed to make room for them. The feeder
// uses those that are registered by then.
//
// A shard is registered in pieces. While a piece is being registered, no other thread gets into CUDA, and
// none gets in between two pieces that follow at once (H200: 10 batches per second while memory is locked at
// 20 GB/s). So each piece is followed by a pause that is kPauses times as long, unless a batch waits for its
// shard.
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

// The images of a shard; with fields, also those of the further fields, which are stored before them.
// Begins at a page.
std::span<const std::byte> registered_range(const ShardReader& shard, bool with_fields);

// Used by the feeder's thread; any thread may call bytes(), holds_all() and remark(). The destructor stops a
// registration between two pieces.
class RegisteredShards {
 public:
  // Registers the start of the first shard for a moment, to see at once whether the platform refuses. Errors:
  // io, corrupt, unsupported, resource.
  RegisteredShards(Dataset dataset, std::shared_ptr<Device> device, std::uint64_t budget_bytes);
  // The same with a budget that may change: `budget_bytes` is called before each registration, on the
  // registering thread. If the budget falls, registered shards stay until their room is needed.
  // `with_fields`: of each shard registered_range(), else its images only.
  RegisteredShards(Dataset dataset, std::shared_ptr<Device> device,
                   std::function<std::uint64_t()> budget_bytes, bool with_fields = false);
  RegisteredShards(const RegisteredShards&) = delete;
  RegisteredShards& operator=(const RegisteredShards&) = delete;

  // True: the shard's images are registered, and stay so until release(). Does not wait.
  bool try_use(std::uint32_t shard);
  // The same, but registers the shard before all others and waits for that. A shard that was refused is tried
  // again. `stopping` is called every few milliseconds; true ends the wait. Errors: io, corrupt, unsupported,
  // resource, cancelled.
  void use(std::uint32_t shard, const std::function<bool()>& stopping = {});
  // Ends one use of each of the shards. The device reads them until `done`, which was recorded in `stream`:
  // its work is done in the order of release(), and that of other streams in any order.
  void release(std::span<const std::uint32_t> shards, const Event& done, const Stream* stream = nullptr);
  // The shards that are needed from now on, in this order. Replaces the earlier list.
  void prefetch(std::vector<std::uint32_t> shards);

  // Refused shards are tried again when the order needs them: there may be more memory by now, or the file
  // may be complete again. If the platform refuses again, it is tried once for all of them.
  void retry_refused();

  std::uint64_t bytes() const;
  bool holds_all() const;  // every shard of the data set is registered
  // How many shards were refused and why; empty: none.
  std::string remark() const;
  double waited_seconds() const noexcept { return waited_seconds_; }  // in use()

 private:
  enum class State : std::uint8_t { absent, changing, registered, refused };
  struct LastUse {
    const Stream* stream = nullptr;
    Event done;
  };
  struct Entry {
    State state = State::absent;
    bool wanted = false;                                // by prefetch()
    bool retried = false;                               // absent: it was refused before
    std::uint32_t users = 0;                            // try_use() and use() without their release()
    std::uint64_t last_used = 0;                        // the larger, the later
    std::vector<LastUse> last_uses;                     // one for each stream that has read it
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
  const bool with_fields_;
  double waited_seconds_ = 0;  // feeder

  mutable std::mutex mutex_;  // not held while a shard is registered or evicted
  std::condition_variable_any changed_;
  std::vector<Entry> shards_;
  std::vector<std::uint32_t> wanted_;    // by prefetch()
  std::size_t next_wanted_ = 0;          // those before it are registered or refused
  std::optional<std::uint32_t> urgent_;  // use() waits for it
  bool no_room_ = false;                 // nothing can be evicted until something changes
  std::uint64_t uses_ = 0;
  std::uint64_t budget_ = 0;          // the last result of budget_bytes()
  std::uint64_t reserved_bytes_ = 0;  // registered and being registered: what the budget bounds
  std::uint64_t bytes_ = 0;           // registered
  std::size_t registered_ = 0;
  std::size_t refused_ = 0;
  std::string refusal_;  // the last one
  std::jthread thread_;  // last, so that it ends before the members are destroyed; started when there is work
};

}  // namespace shard
