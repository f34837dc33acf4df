// How long something takes.
#pragma once

#include <chrono>

namespace shard {

// Runs from its construction. Not disturbed by changes of the system's clock.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  // The seconds so far; starts again from 0.
  double restart() {
    const Clock::time_point now = Clock::now();
    const double passed = std::chrono::duration<double>(now - start_).count();
    start_ = now;
    return passed;
  }

 private:
  Clock::time_point start_ = Clock::now();
};

}  // namespace shard
