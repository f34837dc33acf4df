#include "harness/measure.hpp"

#include <ctime>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "shard/error.hpp"

namespace shard::bench {

double process_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void stop_when(const std::atomic<bool>& cancel, const char* message) {
  if (cancel) throw Error(ErrorCode::cancelled, message);
}

void on_threads(unsigned threads, const std::function<void(unsigned)>& body) {
  std::mutex mutex;
  std::exception_ptr error;
  {
    std::vector<std::jthread> workers;
    for (unsigned thread = 0; thread < threads; ++thread)
      workers.emplace_back([&, thread] {
        try {
          body(thread);
        } catch (...) {
          const std::scoped_lock lock(mutex);
          if (!error) error = std::current_exception();
        }
      });
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace shard::bench
