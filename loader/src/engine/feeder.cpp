#include "engine/feeder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/system/stopwatch.hpp"
#include "base/system/thread_name.hpp"
#include "shard/error.hpp"
#include "slot/profiler_range.hpp"

namespace shard {

namespace {

// While the host's threads work on a batch, the feeder looks for a free slot this often.
constexpr std::chrono::microseconds kGlance{50};
constexpr std::chrono::milliseconds kSettleTurn{20};  // between looks at whether to stop

}  // namespace

Feeder::Feeder(const LoaderSetup& setup, Ring& ring, Mailbox& mailbox,
               std::optional<std::uint64_t> first_epoch)
    : setup_(setup),
      ring_(ring),
      mailbox_(mailbox),
      maker_(setup, ring, mailbox),
      errors_(ring.slots().size()),
      first_epoch_(first_epoch) {
  publish();
  try {
    thread_ = std::thread([this] { feed(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::resource, fmt::format("cannot start a loader's thread: {}", error.what()));
  }
}

Feeder::~Feeder() {
  mailbox_.stop();
  ring_.stop();
  mailbox_.quit();
  thread_.join();
}

LoaderStats Feeder::stats() const {
  LoaderStats stats;
  {
    const std::lock_guard lock(published_.mutex);
    stats = published_.stats;
  }
  stats.transport = maker_.kind();
  stats.reason = maker_.reason();
  stats += maker_.arrivals();
  return stats;
}

void Feeder::publish() {
  LoaderStats stats = maker_.stats();
  stats += maker_.transport().stats();
  stats.consumer_seconds += slot_wait_seconds_;
  const std::lock_guard lock(published_.mutex);
  published_.stats = std::move(stats);
}

void Feeder::feed() {
  name_thread("shard-feed");
  std::exception_ptr refused;
  try {
    setup_.device->enter_thread();
  } catch (...) {  // the device was lost since the loader was made
    refused = std::current_exception();
  }
  if (refused) ring_.lost(refused);
  while (std::optional<Mailbox::Run> run = mailbox_.next_run()) {
    if (!first_epoch_) first_epoch_ = run->epoch;
    // The next epoch is most likely requested next, so its batches are started without a gap.
    while (feed_epoch(run->epoch, run->first_batch)) run = Mailbox::Run{run->epoch + 1, 0};
  }
}

bool Feeder::verifies(std::uint64_t epoch) const noexcept {
  const Verify verify = setup_.options.verify;
  return verify == Verify::always || (verify == Verify::first_epoch && first_epoch_ == epoch);
}

// Makes the batches of an epoch. It begins as many batches ahead as the transport asks for, so that host work
// and reads of several batches overlap. Returns false if it was stopped or a batch failed.
//
//   begin ──▶ begun_ ──▶ end ──▶ (unsettled_, until the device has decoded files that have no index) ──▶ push
bool Feeder::feed_epoch(std::uint64_t epoch, std::uint64_t first_batch) {
  batches_ = setup_.order.batches();
  next_ = first_batch;
  failed_ = false;
  const Transport& transport = maker_.transport();
  const std::size_t most = std::min(transport.depth(), ring_.slots().size());
  std::size_t depth = warm_ ? most : 1;  // nothing may delay the very first batch
  const auto may_begin = [&] { return next_ < batches_ && !mailbox_.stopping(); };
  while (!begun_.empty() || !unsettled_.empty() || may_begin()) {
    if (begun_.empty() && unsettled_.empty()) {
      Slot* slot = acquire();
      if (slot == nullptr) return false;
      begin(*slot, epoch);
    }
    while (begun_.size() < depth && may_begin()) {
      settle_done();
      // Do not wait for a slot here if the oldest batch can be ended. While the host still works on that one,
      // begin another batch as soon as there is a slot.
      const bool room = transport.has_room() && maker_.ready(epoch, next_);
      if (Slot* slot = room ? ring_.try_acquire() : nullptr)
        begin(*slot, epoch);
      else if (begun_.empty() || begun_.front()->batches == 0 || transport.wait(*begun_.front(), kGlance))
        break;
    }
    // To settle a batch may end all that were begun.
    while (!begun_.empty() && !unsettled_.empty() && begun_.front()->batches > 0 &&
           !transport.wait(*begun_.front(), kGlance))
      settle_done();
    if (!begun_.empty())
      end_first();
    else if (!unsettled_.empty())
      settle_first();
    settle_done();
    depth = most;
  }
  return !failed_ && !mailbox_.stopping();
}

void Feeder::begin(Slot& slot, std::uint64_t epoch) {
  warm_ = true;
  begun_.push_back(&slot);
  try {
    const std::uint64_t most = std::max<std::uint32_t>(setup_.options.together, 1);
    maker_.begin(slot, epoch, next_, std::min(most, batches_ - next_), verifies(epoch));
    next_ += slot.batches;
  } catch (...) {
    fail(slot);
    make_fewer(slot, [&] { maker_.begin_again(slot); });
  }
}

void Feeder::fail(Slot& slot) {
  errors_[slot.number] = std::current_exception();
  maker_.abandon(slot);
  failed_ = true;
  next_ = batches_;
}

// Of batches that could not be made as one, those before the one that fails.
template <class Make>
void Feeder::make_fewer(Slot& slot, const Make& make) {
  while (--slot.batches > 0) {
    if (mailbox_.stopping()) continue;
    try {
      return make();
    } catch (...) {
      fail(slot);
    }
  }
}

void Feeder::end_first() {
  Slot& slot = *begun_.front();
  begun_.pop_front();
  if (slot.batches > 0) {
    try {
      maker_.end(slot);
    } catch (...) {
      fail(slot);
      const std::deque<Slot*> others = slot.batches > 1 ? std::exchange(begun_, {}) : std::deque<Slot*>();
      for (Slot* other : others) end_unread(*other);
      make_fewer(slot, [&] { maker_.make_again(slot); });
      push(slot);
      for (Slot* other : others) push(*other);
      return;
    }
  }
  push(slot);
}

// Batches are pushed in their order.
void Feeder::push(Slot& slot) {
  slot.error = std::exchange(errors_[slot.number], nullptr);
  publish();
  if (unsettled_.empty() && (slot.batches == 0 || !maker_.needs_a_look(slot)))
    ring_.push_ready(&slot);
  else
    unsettled_.push_back(&slot);
}

// Nobody gets behind the batch before it, which failed.
void Feeder::end_unread(Slot& slot) {
  try {
    if (slot.batches > 0) maker_.end(slot);
  } catch (...) {
    fail(slot);
    slot.batches = 0;
  }
}

void Feeder::settle_done() {
  while (!unsettled_.empty()) {
    const Slot& slot = *unsettled_.front();
    try {
      if (!slot.error && !slot.ready_event.done()) return;
    } catch (const Error&) {  // is thrown again where it is waited for
    }
    settle_first();
  }
}

// Waits until the device has made the batch. If it has refused some files, they are decoded by the host.
void Feeder::settle_first() {
  Slot& slot = *unsettled_.front();
  const auto refuses = [&] {
    while (!slot.ready_event.wait_for(kSettleTurn))
      if (mailbox_.stopping()) throw Error(ErrorCode::cancelled, "stopped while a batch is decoded");
    return maker_.refuse_files(slot);
  };
  try {
    while (!slot.error && maker_.needs_a_look(slot) && refuses()) {
      while (!begun_.empty()) end_first();
      maker_.make_again(slot);
    }
  } catch (...) {
    fail(slot);
    slot.error = std::exchange(errors_[slot.number], nullptr);
    slot.batches = 0;
  }
  unsettled_.pop_front();
  publish();
  ring_.push_ready(&slot);
}

// Null: stopped, or the ring has failed.
Slot* Feeder::acquire() {
  const ProfilerRange range(*setup_.device, "shard: wait for a free batch");
  const Stopwatch watch;
  Slot* const slot = ring_.acquire();
  slot_wait_seconds_ += watch.seconds();
  publish();
  return slot;
}

}  // namespace shard
