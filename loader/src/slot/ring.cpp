#include "slot/ring.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace shard {

namespace {

// Whether the work has ended. Its errors go to whoever waits for it.
bool over(const Event& event) {
  try {
    return event.done();
  } catch (...) {
    return true;
  }
}

// Neither the device nor a consumer works on the slot. If one did, copies into the slot would wait in the
// copy stream, and the copies of an earlier batch would wait after them.
bool at_rest(const Slot& slot) {
  return over(slot.ready_event) && std::all_of(slot.released.begin(), slot.released.end(), over);
}

// Waits for the work that was queued before the release, then frees. The consumer sees errors of that work.
void free_memory(Slot& slot) noexcept {
  for (const Event& event : slot.released) {
    try {
      event.wait();
    } catch (...) {
    }
  }
  slot = Slot();
}

}  // namespace

Ring::Ring(std::shared_ptr<Device> device, std::size_t slots)
    : process_(::getpid()), device_(std::move(device)), slots_(slots) {
  for (Slot& slot : slots_) {
    slot.number = free_.size();
    free_.push_back(&slot);
  }
}

bool Ring::made_by_another_process() const noexcept { return ::getpid() != process_; }

Slot* Ring::acquire() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || failure_ || !free_.empty(); });
  if (stopped_ || failure_) return nullptr;
  return take_free();
}

Slot* Ring::try_acquire() {
  const std::lock_guard lock(mutex_);
  if (stopped_ || failure_ || free_.empty() || !at_rest(*free_.front())) return nullptr;
  return take_free();
}

Slot* Ring::take_free() {
  Slot* const slot = free_.front();
  free_.pop_front();
  slot->unwanted = std::make_shared<std::atomic<bool>>(false);
  return slot;
}

void Ring::push_ready(Slot* slot) {
  const std::lock_guard lock(mutex_);
  ready_.push_back(slot);
  changed_.notify_all();
}

bool Ring::pop_ends() const { return stopped_ || failure_ || !ready_.empty() || lent_ == slots_.size(); }

Ring::Pop Ring::pop_ready(Slot*& slot, std::size_t& batch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pop_ends(); });
  if (failure_) return Pop::failed;
  if (stopped_) return Pop::stopped;
  if (ready_.empty()) return Pop::all_lent;
  slot = ready_.front();
  batch = slot->handed_out++;
  if (slot->handed_out == slot->parts()) ready_.pop_front();
  if (!slot->lent) ++lent_;
  slot->lent = true;
  slot->run = run_;
  return Pop::slot;
}

bool Ring::wait_ready(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [&] { return pop_ends(); });
}

bool Ring::is_waiting(const Slot& slot, StreamRef stream) const {
  const std::lock_guard lock(mutex_);
  return std::find(slot.waiting.begin(), slot.waiting.end(), stream) != slot.waiting.end();
}

void Ring::waits(Slot& slot, StreamRef stream) {
  const std::lock_guard lock(mutex_);
  slot.waiting.push_back(std::move(stream));
}

void Ring::give_back(Slot* slot, std::vector<Event> readers, std::span<const StreamRef> reading) {
  const std::lock_guard lock(mutex_);
  slot->readers.insert(slot->readers.end(), readers.begin(), readers.end());
  for (const StreamRef& stream : reading)
    if (std::find(slot->reading.begin(), slot->reading.end(), stream) == slot->reading.end())
      slot->reading.push_back(stream);
  ++slot->given_back;
  const bool is_ready = !ready_.empty() && ready_.front() == slot;  // the rest of it is to be handed out
  if (slot->given_back == slot->handed_out && !is_ready) become_free(slot);
}

// All that was handed out of it is back, and nothing else will be.
void Ring::become_free(Slot* slot) {
  for (const StreamRef& stream : slot->reading) slot->readers.push_back(device_->record(stream));
  slot->reading.clear();
  slot->waiting.clear();
  slot->released = std::exchange(slot->readers, {});
  slot->handed_out = slot->given_back = 0;
  if (std::exchange(slot->lent, false)) --lent_;
  if (stopped_ && slot->unwanted) *slot->unwanted = true;
  if (retired_) return free_memory(*slot);
  free_.push_back(slot);
  changed_.notify_all();
}

// Nobody will read the rest of what was a ready slot.
void Ring::leave_unread(Slot* slot) {
  if (slot->batches > 0)
    slot->readers.push_back(slot->ready_event);
  else
    slot->readers = std::move(slot->released);  // nothing was made after the batch before
  if (slot->given_back != slot->handed_out) return;
  try {
    become_free(slot);
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
  }
}

void Ring::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const Slot& slot : slots_)
    if (!slot.lent && slot.unwanted) *slot.unwanted = true;
  changed_.notify_all();
}

void Ring::drain() {
  const std::lock_guard lock(mutex_);
  for (Slot* slot : std::exchange(ready_, {})) leave_unread(slot);
  ++run_;
  spoiled_by_ = nullptr;
  spoiled_.store(false, std::memory_order_release);
  stopped_ = false;
  changed_.notify_all();
}

void Ring::retire() {
  const std::lock_guard lock(mutex_);
  retired_ = stopped_ = true;
  for (Slot* slot : free_) free_memory(*slot);
  for (Slot* slot : std::exchange(ready_, {})) leave_unread(slot);
  free_.clear();
}

void Ring::lost(std::exception_ptr why) noexcept {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(why);
  failed_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void Ring::spoiled(const Slot& slot, std::exception_ptr why) noexcept {
  const std::lock_guard lock(mutex_);
  if (spoiled_by_ || slot.run != run_) return;
  spoiled_by_ = std::move(why);
  spoiled_.store(true, std::memory_order_release);
}

std::exception_ptr Ring::spoiled_by() const {
  if (!spoiled_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  return spoiled_by_;
}

std::exception_ptr Ring::failure() const {
  if (!failed_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace shard
