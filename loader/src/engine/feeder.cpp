#include "engine/feeder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <system_error>
#include <utility>

#include "base/system/stopwatch.hpp"
#include "base/system/thread_name.hpp"
#include "format/dataset/shard_store.hpp"
#include "shard/error.hpp"
#include "slot/profiler_range.hpp"

namespace shard {

namespace {

// While the host's threads work on a batch, the feeder looks for a free slot this often.
constexpr std::chrono::microseconds kGlance{50};

}  // namespace

Feeder::Feeder(const LoaderSetup& setup, Ring& ring, Mailbox& mailbox,
               std::optional<std::uint64_t> first_epoch)
    : setup_(setup), ring_(ring), mailbox_(mailbox), maker_(setup, ring, mailbox), first_epoch_(first_epoch) {
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
    const std::lock_guard lock(told_.mutex);
    stats = told_.stats;
  }
  stats.transport = maker_.kind();
  stats.reason = maker_.reason();
  const ShardStore::Traffic remote = ShardStore(setup_.dataset).traffic();
  stats.fetched_bytes = remote.bytes;
  stats.requests = remote.requests;
  stats.retries = remote.retries;
  const ShardFiller::Arrived arrived = maker_.arrived();
  stats.arrived_shards = arrived.shards;
  stats.arrived_bytes = arrived.bytes;
  stats.storage_problem = maker_.storage_problem();
  return stats;
}

void Feeder::publish() {
  const BatchMaker::Counts& counts = maker_.counts();
  const TransportUse use = maker_.transport().use();
  const std::lock_guard lock(told_.mutex);
  told_.stats.bytes = counts.bytes;
  told_.stats.storage_seconds = use.storage_seconds;
  told_.stats.link_seconds = counts.link_seconds;
  told_.stats.consumer_seconds = slot_wait_seconds_ + counts.consumer_seconds;
  told_.stats.registered_bytes = use.registered_bytes;
  told_.stats.fetch_seconds = counts.fetch_seconds;
  told_.stats.passed_bytes = counts.passed_bytes;
  told_.stats.transit_bytes = counts.transit_bytes;
  told_.stats.pinned_bytes = counts.pinned_bytes + use.pinned_bytes;
  told_.stats.device_bytes = counts.device_bytes;
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
bool Feeder::feed_epoch(std::uint64_t epoch, std::uint64_t first_batch) {
  const std::uint64_t batches = setup_.order.batches();
  const Transport& transport = maker_.transport();
  const std::size_t most = std::min(transport.depth(), ring_.slots().size());
  std::size_t depth = warm_ ? most : 1;  // nothing may delay the very first batch
  std::uint64_t next = first_batch;
  bool failed = false;
  std::deque<Slot*> begun;
  const auto fail = [&](Slot& slot) {
    slot.error = std::current_exception();
    maker_.abandon(slot);
    failed = true;
    next = batches;
  };
  const auto begin = [&](Slot* slot) {
    warm_ = true;
    begun.push_back(slot);
    try {
      maker_.begin(*slot, epoch, next, verifies(epoch));
      ++next;
    } catch (...) {
      fail(*slot);
    }
  };
  while (!begun.empty() || (next < batches && !mailbox_.stopping())) {
    if (begun.empty()) {
      Slot* slot = acquire();
      if (slot == nullptr) return false;
      begin(slot);
    }
    while (begun.size() < depth && next < batches && !mailbox_.stopping()) {
      // Do not wait for a slot here if the oldest batch can be ended. While the host still works on that one,
      // begin another batch as soon as there is a slot.
      const bool room = transport.has_room() && maker_.ready(epoch, next);
      if (Slot* slot = room ? ring_.try_acquire() : nullptr)
        begin(slot);
      else if (begun.front()->error || transport.wait(*begun.front(), kGlance))
        break;
    }
    Slot* const slot = begun.front();
    begun.pop_front();
    if (!slot->error) {
      try {
        maker_.end(*slot);
      } catch (...) {
        fail(*slot);
      }
    }
    publish();
    ring_.push_ready(slot);
    depth = most;
  }
  return !failed && !mailbox_.stopping();
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
