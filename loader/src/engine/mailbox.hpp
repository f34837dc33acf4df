// Mailbox: the loader's requests to its feeder. In the other direction it only tells when the feeder is idle.
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
  // Make the batches of `epoch` from `first_batch` on, then those of the following epochs, until stop().
  // `first_batch` may be the number of batches of the epoch: then the next epoch comes first.
  struct Run {
    std::uint64_t epoch = 0;
    std::uint64_t first_batch = 0;
  };

  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // For the loader. The feeder must be idle.
  void run(const Run& run);
  // Ends the run, even if the feeder has not seen it yet. Does not wait.
  void stop() noexcept { stopping_ = true; }
  // Waits until the feeder has ended its last run. Call stop() first.
  void wait_idle();
  // No run follows. Call stop() first.
  void quit();

  // For the feeder: it is idle until there is a run. None after quit().
  std::optional<Run> next_run();
  // True if the run must end. From any thread.
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
