// What every measurement is made of: a clock and a way to stop.
#pragma once

#include <atomic>
#include <exception>
#include <string>

#include "base/system/stopwatch.hpp"
#include "shard/error.hpp"

namespace shard::bench {

double process_cpu_seconds();  // user and system, all threads

struct Elapsed {
  double seconds = 0;
  double cpu_seconds = 0;  // of all threads of the process: steadier than the clock on a busy machine
  double cores() const noexcept { return seconds > 0 ? cpu_seconds / seconds : 0; }
};

// Both clocks, started by the constructor.
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

// Runs `body` if `problem` is empty. If `body` throws, the message becomes the problem; only cancelled is
// thrown on.
template <class Body>
void attempt(std::string& problem, const Body& body) {
  if (!problem.empty()) return;
  try {
    body();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    problem = error.what();
  } catch (const std::exception& error) {  // of the filesystem
    problem = error.what();
  }
}

}  // namespace shard::bench
