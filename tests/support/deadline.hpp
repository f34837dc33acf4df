// How long a test waits for what happens on another thread: far longer than it takes, so that only a failure
// reaches it.
#pragma once

#include <chrono>
#include <thread>

namespace shard::testing {

class Deadline {
 public:
  bool passed() const { return std::chrono::steady_clock::now() - begin_ > std::chrono::seconds(60); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Looks until the condition holds. False: it never did.
template <class Condition>
bool comes_true(const Condition& condition) {
  for (const Deadline deadline; !deadline.passed(); std::this_thread::yield())
    if (condition()) return true;
  return false;
}

}  // namespace shard::testing
