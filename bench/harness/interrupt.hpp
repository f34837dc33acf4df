// While an InterruptGuard exists, SIGINT and SIGTERM set a flag instead of ending the process, so that
// temporary files can be removed. A second Ctrl-C ends the process.
#pragma once

#include <atomic>

namespace shard::bench {

bool interrupted() noexcept;
const std::atomic<bool>& interrupt_flag() noexcept;

// Only one may exist at a time. The destructor restores the former handlers.
class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();
};

}  // namespace shard::bench
