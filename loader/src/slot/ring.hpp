// The ring of batches: who may touch what, and when.
//
//   free --(feeder)--> filling --> copying --> ready --(next)--> lent --(release)--> free
//
//   filling  the feeder, on the host: indices, columns, staging memory
//   copying  the device: the work up to `ready_event` writes the slot
//   ready    queued for the consumer in the order of the epochs; the device may still work on it
//   lent     the consumer reads the slot; orders its stream after `ready_event`
//   free     handed back; device work may follow only after the events in `released`
//
// A slot may hold several batches, which are handed out and released one by one. It is lent from the first
// of them on, stays in front of the ready ones until all are handed out, and is free when all are back.
//
// A slot is reused only through acquire(), which returns released slots together with these events. If the
// streams of a slot's readers cannot tell when they are done, the slot is lost(): it stays lent, and the ring
// has failed. A lease holds the ring, so the ring lives on after the loader as long as batches are lent. Of
// the slots' memory only that of the lent ones lives on (retire()).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "slot/slot.hpp"

namespace shard {

// Thread safe. Only the feeder's thread acquires and pushes, only the consumer's thread pops, and any thread
// gives back.
class Ring {
 public:
  // The ring holds the device as long as it has memory of slots.
  Ring(std::shared_ptr<Device> device, std::size_t slots);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Waits for a free slot. Null: the ring was stopped, or it failed.
  // The slot is for a new batch: the mark of the last one, Slot::unwanted, is replaced.
  Slot* acquire();
  // Does not wait. Null if no slot is free of whose earlier work on the device nothing is left.
  Slot* try_acquire();
  void push_ready(Slot* slot);

  enum class Pop : std::uint8_t { slot, stopped, all_lent, failed };
  // Waits for the next ready slot, and which of its batches is next; Slot::batches: its error. all_lent:
  // consumers hold every slot, so the wait would never end. failed: see failure().
  Pop pop_ready(Slot*& slot, std::size_t& batch);
  // Waits until pop_ready() would not have to wait. False: `timeout` passed before.
  bool wait_ready(std::chrono::milliseconds timeout);
  // Whether the stream waits for what is in this lent slot, and that it does from now on.
  bool is_waiting(const Slot& slot, StreamRef stream) const;
  void waits(Slot& slot, StreamRef stream);
  // What pop_ready() handed out comes back. `readers`: the work that may still read it. `reading`: streams
  // whose work may, and which nobody can destroy: an event is recorded in them once all of the slot is back.
  // Throws their errors; the slot is not used again then.
  void give_back(Slot* slot, std::vector<Event> readers, std::span<const StreamRef> reading = {});

  // acquire() and pop_ready() return from now on, until drain(). Batches that are not lent are unwanted.
  void stop();
  // Makes the ready slots free, for a new epoch. The feeder must be idle.
  void drain();
  // The loader has ended, and none of its work is left. Frees the memory of the slots; that of a lent one
  // when it is given back.
  void retire();
  // It cannot be known when the readers of this lent slot are done, so its memory is never used again.
  void lost(std::exception_ptr why) noexcept;
  // Why the ring can no longer be used; null if it can.
  std::exception_ptr failure() const;

  // A lent batch of the current run cannot be read. The first error stays until drain().
  void spoiled(const Slot& slot, std::exception_ptr why) noexcept;
  // The first error of a lent batch of the current run; null if there was none.
  std::exception_ptr spoiled_by() const;

  // True in a child after fork(), where a thread that no longer exists may hold the mutex.
  bool made_by_another_process() const noexcept;

  std::vector<Slot>& slots() noexcept { return slots_; }
  Device& device() noexcept { return *device_; }

 private:
  // With the mutex held.
  bool pop_ends() const;
  Slot* take_free();  // one is free
  void become_free(Slot* slot);
  void leave_unread(Slot* slot);

  const int process_;
  std::shared_ptr<Device> device_;
  std::vector<Slot> slots_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot*> free_;
  std::deque<Slot*> ready_;
  std::size_t lent_ = 0;
  bool stopped_ = false;
  bool retired_ = false;
  std::exception_ptr failure_;
  // Whether failure_ and spoiled_by_ are set: asked for with each batch, and therefore without the mutex.
  std::atomic<bool> failed_{false};
  std::atomic<bool> spoiled_{false};
  // Runs are counted by drain().
  std::uint64_t run_ = 0;
  std::exception_ptr spoiled_by_;
};

}  // namespace shard
