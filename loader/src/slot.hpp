// The ring of batches: who may touch what, and when.
//
//   free --(feeder)--> filling --> copying --> ready --(next)--> lent --(release)--> free
//
//   filling  the feeder, on the host: indices, columns, staging memory
//   copying  the device: the work up to `ready_event` writes the slot
//   ready    queued for the consumer in the order of the epoch; the device may still be at it
//   lent     the consumer reads the slot; orders its stream after `ready_event`
//   free     handed back; device work may follow only after `released_event`
//
// A slot is reused only through acquire(), which hands out released slots together with that event. All
// slots, and with them all memory of batches, live as long as the ring; a lease holds the ring.
#pragma once

#include <unistd.h>

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

// A stored sample to be brought: to device memory, or (target null) only to be pointed at, where the device
// reads host memory.
struct FetchItem {
  std::uint64_t sample = 0;  // data set index
  Dataset::Location at;
  std::byte* target = nullptr;
  std::uint64_t size_bytes = 0;  // that reach the device: of the sample, or of its packed frame
  std::uint64_t offset = 0;      // in the batch: of the items before it
  std::byte* staging =
      nullptr;  // mapped: where the host brings it first; null: it is read where it is mapped
};

struct Slot {
  std::unique_ptr<Block> images;          // device: delivered batch
  std::unique_ptr<Block> raw;             // device: stored batch before the transform; none where not needed
  std::unique_ptr<Block> staging;         // pinned: stored batch; staged, direct, and mapped at first
  std::unique_ptr<Block> broken;          // codec packed, pinned: TransformWork::broken
  std::unique_ptr<Block> columns_host;    // pinned: columns, one after the other, each 256-aligned
  std::unique_ptr<Block> columns_device;  // the same on the device
  std::vector<ColumnView> columns;
  CopyItem columns_copy;                     // all columns, host to device
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
  BatchIndices indices;
  std::uint64_t epoch = 0;
  std::uint64_t index = 0;
  std::uint64_t serial = 0;  // counts the batches of a loader
  Event copied_event;        // by the transport: samples are on the device
  Event ready_event;
  Event released_event;
  std::exception_ptr error;  // the batch could not be made; the slot holds nothing
};

class Ring {
 public:
  // The device is held for as long as the slots' memory lives.
  Ring(std::shared_ptr<Device> device, std::size_t slots)
      : process_(::getpid()), device_(std::move(device)), slots_(slots) {
    for (Slot& slot : slots_) free_.push_back(&slot);
  }

  // A free slot; waits for one. Null: stopped.
  Slot* acquire() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || !free_.empty(); });
    if (stopped_) return nullptr;
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
  enum class Pop : std::uint8_t { slot, end, stopped, all_lent };
  // The next ready slot; waits for one. end: again and again, until pass_end(). all_lent: every slot is with
  // consumers, so that waiting could not end.
  Pop pop_ready(Slot*& slot) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return pop_ends(); });
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
    if (stopped_ || free_.empty() || !at_rest(*free_.front())) return nullptr;
    Slot* slot = free_.front();
    free_.pop_front();
    return slot;
  }
  // From lent (or, without having been lent, from filling) to free.
  void give_back(Slot* slot, Event released, bool was_lent) {
    std::lock_guard lock(mutex_);
    slot->released_event = std::move(released);
    if (was_lent) --lent_;
    free_.push_back(slot);
    changed_.notify_all();
  }
  // Puts the ready slots back; for a new epoch. The feeder must be idle.
  void drain() {
    std::lock_guard lock(mutex_);
    for (Slot* slot : ready_) {
      if (slot == nullptr) continue;
      slot->released_event = slot->ready_event;
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
  bool pop_ends() const { return stopped_ || !ready_.empty() || lent_ == slots_.size(); }
  static bool at_rest(const Slot& slot) {
    try {
      return slot.ready_event.done();
    } catch (...) {  // the work failed: whoever waits for it is told so
      return true;
    }
  }

  const int process_;
  std::shared_ptr<Device> device_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot*> free_;
  std::deque<Slot*> ready_;  // null: the end of an epoch
  std::size_t lent_ = 0;
  bool stopped_ = false;
};

}  // namespace shard
