// The inside of a Loader: which epoch its consumer is in, and how far. The batches come from the feeder's
// ring.
//
//                                              the last batch
//   not_started ──▶ starting ──▶ running ─────────────────────▶ ended ──▶ running, of the next epoch:
//                    ▲    │        │                              ▲       start_epoch() without a gap
//    start_epoch()   │    │        │ a batch fails         next() │
//    or resume() from│    │        ▼                              │
//    any state ──────┘    │      failed                           │
//                         └──▶ resumed_at_end ────────────────────┘
//
//   cancel() leads from any state to cancelled; start_epoch() and resume() from there to starting.
//
// set_views() and set_data() only replace the setup. The next start() makes ring and feeder again,
// if theirs is another one.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/feeder.hpp"
#include "engine/mailbox.hpp"
#include "setup/loader_setup.hpp"
#include "shard/loader/loader.hpp"
#include "slot/ring.hpp"

namespace shard {

enum class EpochState : std::uint8_t {
  // next() starts the epoch.
  not_started,
  // It waits for the feeder to end its run of another epoch.
  starting,
  // Batches are left.
  running,
  // No batch is left. The next call of next() returns null.
  resumed_at_end,
  // No batch is left. The feeder already makes batches of the next epoch.
  ended,
  // next() throws the same error again.
  failed,
  cancelled,
};

// What makes the batches of one setup.
struct LoaderWorks {
  // Errors: those of Feeder. `first_epoch`: that of the loader, if one has started.
  LoaderWorks(std::shared_ptr<const LoaderSetup> of, std::optional<std::uint64_t> first_epoch);
  LoaderWorks(const LoaderWorks&) = delete;
  LoaderWorks& operator=(const LoaderWorks&) = delete;
  // Ends the feeder's run.
  void stop() noexcept;

  const std::shared_ptr<const LoaderSetup> setup;
  const std::shared_ptr<Ring> ring;
  // Destroyed after the feeder, which works in the slots' memory.
  struct Retirement {
    Ring& ring;
    ~Retirement() { ring.retire(); }
  } retirement;
  Mailbox mailbox;
  Feeder feeder;
};

class Loader::Impl {
 public:
  Impl(Dataset dataset, std::shared_ptr<Device> device, LoaderOptions options);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void start_epoch(std::uint64_t epoch, std::uint64_t first_batch);
  // A slot, and which of its batches. Null: the end of the epoch.
  struct Part {
    Slot* slot = nullptr;
    std::size_t batch = 0;
  };
  Part next();
  bool wait_ready(std::chrono::milliseconds timeout);
  void cancel() noexcept;
  LoaderState state() const;
  void resume(const LoaderState& state);
  // At least one.
  void set_views(std::vector<TransformOptions> views);
  void set_data(Dataset dataset);
  LoaderStats stats() const;

  // Of the epoch that starts next.
  const LoaderSetup& setup() const noexcept { return *setup_; }
  // After next() has returned a slot.
  const LoaderWorks& works() const noexcept { return *works_; }
  bool made_by_another_process() const noexcept;
  // The loader is in this epoch: batches are left, or it was resumed at the end and next() was not called
  // yet.
  bool inside(std::uint64_t epoch) const;

 private:
  void require_same_process() const;
  void require_ring() const;  // throws the error because of which the ring failed
  void check_state(const LoaderState& state) const;
  std::shared_ptr<const LoaderSetup> setup_with(std::vector<TransformOptions> views) const;
  void use(std::shared_ptr<const LoaderSetup> setup);
  void start(std::unique_lock<std::mutex>& lock, std::uint64_t epoch, std::uint64_t first_batch);
  void replace_works(std::unique_lock<std::mutex>& lock);
  void check_last_batch();
  void fail(std::exception_ptr error);

  const int process_;
  const LoaderOptions asked_;  // before they were checked with a data set
  // Replaced with the mutex held, by the consumer's thread, which therefore reads both without it.
  std::shared_ptr<const LoaderSetup> setup_;
  // Null while it is made again, and after that has failed.
  std::unique_ptr<LoaderWorks> works_;
  const std::uint64_t order_digest_;
  const std::uint64_t selection_digest_;

  // If the device decodes samples: the batch that next() returned last in this run. The consumer's thread
  // only.
  struct HandedOut {
    const Verdict* verdict = nullptr;
    std::uint64_t batch = 0;
    std::size_t first = 0;  // its rows
    std::size_t end = 0;
    Event copied;
    Event ready;
  };
  HandedOut last_;

  mutable std::mutex mutex_;
  EpochState state_ = EpochState::not_started;
  std::uint64_t epoch_ = 0;
  // Batches of the epoch.
  std::uint64_t handed_out_ = 0;
  // failed: what next() throws.
  std::exception_ptr error_;
  // The consumer's part: batches, samples, starved_seconds; and what feeders counted that have ended.
  LoaderStats stats_;
  // The first one that was started.
  std::optional<std::uint64_t> first_epoch_;
};

}  // namespace shard
