#include "base/system/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/system/cpu_count.hpp"

namespace shard {

unsigned thread_count(unsigned jobs) { return jobs != 0 ? jobs : cpu_count(); }

void run_threads(unsigned threads, const std::function<void(unsigned thread)>& work) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto guarded = [&](unsigned thread) {
    try {
      work(thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(guarded, thread);
    } catch (const std::system_error&) {
      // Fewer threads do the same work, in more time.
    }
    guarded(0);
  }
  if (first) std::rethrow_exception(first);
}

void parallel_for(unsigned threads, std::uint64_t count,
                  const std::function<void(unsigned thread, std::uint64_t index)>& body) {
  std::atomic<std::uint64_t> next{0};
  const auto used =
      static_cast<unsigned>(std::min<std::uint64_t>(threads, std::max<std::uint64_t>(count, 1)));
  run_threads(used, [&](unsigned thread) {
    try {
      for (std::uint64_t index = next++; index < count; index = next++) body(thread, index);
    } catch (...) {
      next = count;
      throw;
    }
  });
}

}  // namespace shard
