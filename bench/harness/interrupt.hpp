// Ctrl-C as a question: while a guard lives, SIGINT and SIGTERM set a flag instead of ending the process, so
// that what was made on the way can be removed. A second Ctrl-C ends it.
#pragma once

#include <atomic>

namespace shard::bench {

bool interrupted() noexcept;
const std::atomic<bool>& interrupt_flag() noexcept;

// One at a time; the former handlers come back with its end.
class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();
};

}  // namespace shard::bench
