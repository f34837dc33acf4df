// Mapped ranges that are registered with the device, within a budget of bytes: one of each shard, or archive.
// One thread registers those that the order needs next. The feeder uses those that are registered by then.
// Where the budget is full, NoRoom says what becomes of the others.
//
// A range is registered in pieces. While a piece is being registered, no other thread gets into CUDA, and
// none gets in between two pieces that follow at once (H200: 10 batches per second while memory is locked at
// 20 GB/s). So each piece is followed by a pause, unless a batch waits for its range.
//
//   absent ──▶ changing ──▶ registered ──▶ changing ──▶ absent
//                  │                       (neither used nor wanted; for one that is waited for: not used)
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

#include "shard/loader/device.hpp"

namespace shard {

// What can be registered. Called by the registering thread.
class MappedRanges {
 public:
  virtual ~MappedRanges() = default;
  // The number of ranges.
  virtual std::size_t size() const = 0;
  // For messages: "shards".
  virtual const char* name() const noexcept = 0;
  // Begins at a page. May open the file. Errors: those of opening it.
  virtual std::span<const std::byte> range(std::uint32_t number) const = 0;
  // Reads a part of it into memory, which begins at a page (populate.hpp).
  virtual void read_in(std::uint32_t number, std::span<const std::byte> part,
                       const std::stop_token& stop) const = 0;
};

// What is done for ranges that the order needs next where the budget is full.
enum class NoRoom : std::uint8_t {
  evict,    // those go that are no longer needed
  read_in,  // those that are registered stay, the others are only read into memory
};

// Used by the feeder's thread; any thread may call bytes(), holds_all() and remark(). The destructor stops a
// registration between two pieces.
class RegisteredRanges {
 public:
  // `budget_bytes` is called before each registration, on the registering thread. If the budget falls, what
  // is registered stays until its room is needed.
  RegisteredRanges(std::unique_ptr<const MappedRanges> ranges, std::shared_ptr<Device> device,
                   std::function<std::uint64_t()> budget_bytes);
  RegisteredRanges(const RegisteredRanges&) = delete;
  RegisteredRanges& operator=(const RegisteredRanges&) = delete;

  // Registers the start of the first range for a moment, to see at once whether the platform refuses. Errors:
  // io, corrupt, unsupported, resource.
  void probe();
  // True: the range is registered, and stays so until release(). Does not wait.
  bool try_use(std::uint32_t number);
  // The same, but registers the range before all others and waits for that. One that was refused is tried
  // again. `stopping` is called every few milliseconds; true ends the wait. Errors: io, corrupt, unsupported,
  // resource, cancelled.
  void use(std::uint32_t number, const std::function<bool()>& stopping = {});
  // Ends one use of each of the ranges. The device reads them until `done`, which was recorded in `stream`:
  // its work is done in the order of release(), and that of other streams in any order.
  void release(std::span<const std::uint32_t> numbers, const Event& done, const Stream* stream = nullptr);
  // The ranges that are needed from now on, in this order. Replaces the earlier list.
  void prefetch(std::vector<std::uint32_t> numbers, NoRoom no_room = NoRoom::evict);

  // Refused ranges are tried again when the order needs them: there may be more memory by now, or the file
  // may be complete again. If the platform refuses again, it is tried once for all of them.
  void retry_refused();

  std::uint64_t bytes() const;
  bool holds_all() const;  // every range is registered
  // How many were refused and why; empty: none.
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
    bool passed = false;                                // wanted, and there was no room for it
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
  std::vector<std::unique_ptr<Registration>> register_range(std::uint32_t number,
                                                            std::span<const std::byte> range,
                                                            const std::stop_token& stop);
  void pause(double piece_seconds, double pieces, const std::stop_token& stop);
  void register_next(Lock& lock, std::uint32_t number, const std::stop_token& stop);
  bool make_room(Lock& lock, std::uint32_t number, std::uint64_t bytes);
  void pass(Lock& lock, std::uint32_t number, std::span<const std::byte> range, const std::stop_token& stop);
  void evict(Lock& lock, std::uint32_t number);
  void add_user(Entry& entry);
  void refuse_again(const std::exception_ptr& error);

  const std::unique_ptr<const MappedRanges> ranges_;
  const std::shared_ptr<Device> device_;
  const std::function<std::uint64_t()> ask_budget_;
  double waited_seconds_ = 0;  // feeder

  mutable std::mutex mutex_;  // not held while a range is registered or evicted
  std::condition_variable_any changed_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> wanted_;  // by prefetch()
  NoRoom wanted_without_room_ = NoRoom::evict;
  std::size_t next_wanted_ = 0;          // those before it are registered, refused or passed
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
