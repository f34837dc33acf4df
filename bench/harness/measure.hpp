// What every measurement is made of: a clock, threads, and a way to stop.
#pragma once

#include <atomic>
#include <functional>

#include "base/stopwatch.hpp"

namespace shard::bench {

double process_cpu_seconds();  // user and system, all threads

struct Elapsed {
  double seconds = 0;
  double cpu_seconds = 0;  // of all threads of the process: steadier than the clock on a busy machine
  double cores() const noexcept { return seconds > 0 ? cpu_seconds / seconds : 0; }
};

// Both clocks, from its making on.
class RunClock {
 public:
  Elapsed elapsed() const { return {watch_.seconds(), process_cpu_seconds() - cpu_}; }

 private:
  Stopwatch watch_;
  double cpu_ = process_cpu_seconds();
};

// Throws cancelled once `cancel` is set.
void stop_when(const std::atomic<bool>& cancel, const char* message = "stopped");
inline constexpr const char* kStoppedAndRemoved = "stopped; what was made has been removed";

// Calls body(thread) on `threads` threads at once and waits for all; rethrows the first error.
void on_threads(unsigned threads, const std::function<void(unsigned thread)>& body);

}  // namespace shard::bench
