// Mailbox: what a loader asks of its feeder. Nothing comes back through it but that the feeder is idle.
//
//   loader     stop() ──▶ wait_idle() ──▶ run(r) ──▶ stop() ... quit()
//   feeder     next_run() ──▶ works until stopping() ──▶ next_run() ...
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

namespace shard {

// Thread safe.
class Mailbox {
 public:
  // The batches of `epoch` from `first_batch` on, then those of the epochs after it, until stop(). first_batch
  // may be the number of batches: then it is all of the next epochs.
  struct Run {
    std::uint64_t epoch = 0;
    std::uint64_t first_batch = 0;
  };

  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // For the loader. The feeder must be idle.
  void run(const Run& run);
  // Ends the run, also one that the feeder has not seen yet. Does not wait.
  void stop() noexcept { stopping_ = true; }
  // Waits until the feeder has ended its last run. stop() comes before it.
  void wait_idle();
  // No run follows. stop() comes before it.
  void quit();

  // For the feeder: it is idle until there is a run. None after quit().
  std::optional<Run> next_run();
  // The run is to end. From any thread.
  bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Run> run_;  // not seen by the feeder yet
  bool idle_ = true;
  bool quit_ = false;
};

}  // namespace shard
