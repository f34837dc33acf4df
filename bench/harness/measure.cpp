#include "harness/measure.hpp"

#include <ctime>

namespace shard::bench {

double process_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void stop_when(const std::atomic<bool>& cancel, const char* message) {
  if (cancel) throw Error(ErrorCode::cancelled, message);
}

}  // namespace shard::bench
