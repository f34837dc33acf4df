// The ring of batches: who may touch what, and when.
//
//   free --(feeder)--> filling --> copying --> ready --(next)--> lent --(release)--> free
//
//   filling  the feeder, on the host: indices, columns, staging memory
//   copying  the device: the work up to `ready_event` writes the slot
//   ready    queued for the consumer in the order of the epoch; the device may still be at it
//   lent     the consumer reads the slot; orders its stream after `ready_event`
//   free     handed back; device work may follow only after the events in `released`
//
// A slot is reused only through acquire(), which hands out released slots together with these events. One
// whose readers' streams cannot be asked when they are done is lost(): it stays lent, and the ring has
// failed. A lease holds the ring, which lives on after the loader as long as batches are lent; of the slots'
// memory only that of the lent ones does (retire()).
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "shard/loader/loader.hpp"

namespace shard {

struct StagingBuffer;

// A stored sample to be brought: to device memory, or (target null) only to be pointed at, where the device
// reads host memory.
struct FetchItem {
  std::uint64_t sample = 0;  // data set index
  Dataset::Location at;
  std::byte* target = nullptr;
  std::uint64_t size_bytes = 0;  // that reach the device: of the sample, or of its packed frame
  std::uint64_t offset = 0;      // in the batch: of the items before it
  bool first_of_shard = false;   // no item before it in the batch lies in the same shard
  std::byte* staging =
      nullptr;  // mapped: where the host brings it first; null: it is read where it is mapped
  const std::byte* frame =
      nullptr;  // codec packed: where it is mapped, size_bytes of it; else null: not looked up
};

struct Slot {
  std::unique_ptr<Block> images;          // device: delivered batch
  std::unique_ptr<Block> raw;             // device: stored batch before the transform; none where not needed
  std::unique_ptr<Block> staging;         // pinned: stored batch; direct
  StagingBuffer* staged_in = nullptr;     // staged and mapped: the buffer that the batch took; null: none
  std::unique_ptr<Block> broken;          // codec packed, pinned: TransformWork::broken
  std::unique_ptr<Block> columns_host;    // pinned: columns, ids and mask, one after the other, 256-aligned
  std::unique_ptr<Block> columns_device;  // the same on the device
  std::vector<ColumnView> columns;        // of the data set
  ColumnView ids;                         // int64; of `indices`, as columns
  ColumnView mask;                        // bool
  CopyItem columns_copy;                  // all of these, host to device
  std::vector<Dataset::Location> locations;  // of the batch's samples
  std::vector<SampleView> views;
  std::vector<const std::byte*> sources;  // of the transform
  std::vector<FetchItem> fetch;
  std::vector<const std::byte*> device_sources;  // where each sample lies on the device, before the transform
  std::vector<std::uint64_t> frame_bytes;        // codec packed: of each sample
  std::vector<CopyItem> copies;
  std::vector<std::uint32_t> host_rows;  // mapped: rows that the pool's threads stage or verify
  std::vector<std::uint32_t>
      used_shards;           // mapped: stay registered for this slot until its copies are queued
  std::future<void> filled;  // the pool's threads are done with the batch
  bool verify = false;       // checksums are held against the samples before they are handed out
  BatchIndices indices;      // of the batch that is being made
  BatchIndices handed_out;   // the same for the consumer, whose work may read the last batch's until then
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;
  std::uint64_t serial = 0;  // counts the batches of a loader
  Event copied_event;        // by the transport: samples are on the device
  Event ready_event;
  std::vector<Event> released;  // the work of consumers that reads the slot's last batch
  std::exception_ptr error;     // the batch could not be made; the slot holds nothing
};

class Ring {
 public:
  // The device is held for as long as the slots' memory lives.
  Ring(std::shared_ptr<Device> device, std::size_t slots)
      : process_(::getpid()), device_(std::move(device)), slots_(slots) {
    for (Slot& slot : slots_) free_.push_back(&slot);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // A free slot; waits for one. Null: stopped, or failed.
  Slot* acquire() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || failure_ || !free_.empty(); });
    if (stopped_ || failure_) return nullptr;
    Slot* slot = free_.front();
    free_.pop_front();
    return slot;
  }
  // `last`: of its epoch; batches of the next one may follow.
  void push_ready(Slot* slot, bool last) {
    std::lock_guard lock(mutex_);
    ready_.push_back(slot);
    if (last) ready_.push_back(nullptr);
    changed_.notify_all();
  }
  void push_end() {  // an epoch without further batches
    std::lock_guard lock(mutex_);
    ready_.push_back(nullptr);
    changed_.notify_all();
  }
  // Goes on to the batches behind the end of the epoch. False: the consumer is not at an end.
  bool pass_end() {
    std::lock_guard lock(mutex_);
    if (stopped_ || ready_.empty() || ready_.front() != nullptr) return false;
    ready_.pop_front();
    return true;
  }
  enum class Pop : std::uint8_t { slot, end, stopped, all_lent, failed };
  // The next ready slot; waits for one. end: again and again, until pass_end(). all_lent: every slot is with
  // consumers, so that waiting could not end. failed: see failure().
  Pop pop_ready(Slot*& slot) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return pop_ends(); });
    if (failure_) return Pop::failed;
    if (stopped_) return Pop::stopped;
    if (ready_.empty()) return Pop::all_lent;
    if (ready_.front() == nullptr) return Pop::end;
    slot = ready_.front();
    ready_.pop_front();
    ++lent_;
    return Pop::slot;
  }
  // Waits until pop_ready() would not; false: `timeout` passed before.
  bool wait_ready(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, [&] { return pop_ends(); });
  }
  // acquire() without waiting, also not for the slot's own work on the device: null when none is free and at
  // rest now.
  Slot* try_acquire() {
    std::lock_guard lock(mutex_);
    if (stopped_ || failure_ || free_.empty() || !at_rest(*free_.front())) return nullptr;
    Slot* slot = free_.front();
    free_.pop_front();
    return slot;
  }
  // From lent (or, without having been lent, from filling) to free.
  void give_back(Slot* slot, std::vector<Event> released, bool was_lent) {
    std::lock_guard lock(mutex_);
    slot->released = std::move(released);
    if (was_lent) --lent_;
    if (retired_) return free_memory(*slot);
    free_.push_back(slot);
    changed_.notify_all();
  }
  // The loader has ended, and no work of its own is left: frees the memory of the slots, of each lent one
  // when it is given back.
  void retire() {
    std::lock_guard lock(mutex_);
    retired_ = stopped_ = true;
    for (Slot* slot : free_) free_memory(*slot);
    for (Slot* slot : ready_)
      if (slot != nullptr) free_memory(*slot);
    free_.clear();
    ready_.clear();
  }
  // A lent slot of which nobody can say when its readers are done: its memory is never used again.
  void lost(std::exception_ptr why) noexcept {
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(why);
    changed_.notify_all();
  }
  // Why the ring is of no use any longer; null: it is.
  std::exception_ptr failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
  }
  // Puts the ready slots back; for a new epoch. The feeder must be idle.
  void drain() {
    std::lock_guard lock(mutex_);
    for (Slot* slot : ready_) {
      if (slot == nullptr) continue;
      if (!slot->error) slot->released = {slot->ready_event};  // else: those of the batch before
      free_.push_back(slot);
    }
    ready_.clear();
    stopped_ = false;
    changed_.notify_all();
  }
  void stop() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

  // After fork(), in the child: the mutex may be held by a thread that is not there.
  bool made_by_another_process() const noexcept { return ::getpid() != process_; }

  std::vector<Slot>& slots() noexcept { return slots_; }
  Device& device() noexcept { return *device_; }

 private:
  bool pop_ends() const { return stopped_ || failure_ || !ready_.empty() || lent_ == slots_.size(); }
  // Neither the device nor a consumer is at the slot. Else copies into it would wait in the copy stream, and
  // those of a batch that goes before it behind them.
  static bool at_rest(const Slot& slot) {
    return over(slot.ready_event) && std::all_of(slot.released.begin(), slot.released.end(), over);
  }
  static bool over(const Event& event) {
    try {
      return event.done();
    } catch (...) {  // the work failed: whoever waits for it is told so
      return true;
    }
  }

  // After the work that was queued before the release. An error of that work is the consumer's to see.
  static void free_memory(Slot& slot) noexcept {
    for (const Event& event : slot.released) {
      try {
        event.wait();
      } catch (...) {
      }
    }
    slot = Slot();
  }

  const int process_;
  std::shared_ptr<Device> device_;
  std::vector<Slot> slots_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot*> free_;
  std::deque<Slot*> ready_;  // null: the end of an epoch
  std::size_t lent_ = 0;
  bool stopped_ = false;
  bool retired_ = false;
  std::exception_ptr failure_;
};

}  // namespace shard
