// The host as a device. See shard/loader/device.hpp; the pool below is what its streams share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "shard/loader/device.hpp"

namespace shard {

// Runs operations of many rows on a fixed number of threads. Operations are taken in the order of their
// submission, rows of one operation by all threads together.
class HostPool {
 public:
  struct Operation {
    std::size_t rows = 1;
    std::size_t grain = 1;                                          // rows taken at once
    std::function<void(std::size_t first, std::size_t last)> body;  // may throw
    std::function<void(std::exception_ptr error)>
        finished;  // called once, on the thread that ends the last row; without rows, by submit()
  };

  explicit HostPool(unsigned threads);
  ~HostPool();  // runs what was submitted, then joins
  void submit(Operation operation);

 private:
  struct Active;
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Active>> active_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace shard
