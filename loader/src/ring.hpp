// The ring of batches: who may touch what, and when.
//
//   free --(feeder)--> filling --> copying --> ready --(next)--> lent --(release)--> free
//
//   filling  the feeder, on the host: indices, columns, staging memory
//   copying  the device: the work up to `ready_event` writes the slot
//   ready    queued for the consumer in the order of the epochs; the device may still be at it
//   lent     the consumer reads the slot; orders its stream after `ready_event`
//   free     handed back; device work may follow only after the events in `released`
//
// A slot is reused only through acquire(), which hands out released slots together with these events. One
// whose readers' streams cannot be asked when they are done is lost(): it stays lent, and the ring has
// failed. A lease holds the ring, which lives on after the loader as long as batches are lent; of the slots'
// memory only that of the lent ones does (retire()).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "slot.hpp"

namespace shard {

// Thread safe. One thread, the feeder, acquires and pushes; one, the consumer, pops; any gives back.
class Ring {
 public:
  // The device is held for as long as the slots' memory lives.
  Ring(std::shared_ptr<Device> device, std::size_t slots);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // A free slot; waits for one. Null: stopped, or failed.
  Slot* acquire();
  // The same without waiting, also not for the slot's own work on the device: null if none is free and at
  // rest now.
  Slot* try_acquire();
  void push_ready(Slot* slot);

  enum class Pop : std::uint8_t { slot, stopped, all_lent, failed };
  // The next ready slot; waits for one. all_lent: every slot is with consumers, so that waiting could not end.
  // failed: see failure().
  Pop pop_ready(Slot*& slot);
  // Waits until pop_ready() would not; false: `timeout` passed before.
  bool wait_ready(std::chrono::milliseconds timeout);
  // From lent (or, without having been lent, from filling) to free.
  void give_back(Slot* slot, std::vector<Event> released, bool was_lent);

  // acquire() and pop_ready() return from now on, until drain().
  void stop();
  // Puts the ready slots back; for a new epoch. The feeder must be idle.
  void drain();
  // The loader has ended, and no work of its own is left: frees the memory of the slots, of each lent one
  // when it is given back.
  void retire();
  // A lent slot of which nobody can say when its readers are done: its memory is never used again.
  void lost(std::exception_ptr why) noexcept;
  // Why the ring can no longer be used; null if it can.
  std::exception_ptr failure() const;

  // After fork(), in the child: the mutex may be held by a thread that is not there.
  bool made_by_another_process() const noexcept;

  std::vector<Slot>& slots() noexcept { return slots_; }
  Device& device() noexcept { return *device_; }

 private:
  bool pop_ends() const;

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
};

}  // namespace shard
