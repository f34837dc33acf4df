#include <algorithm>

#include "device/host_device.hpp"

namespace shard {

struct HostPool::Active {
  Operation operation;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> left{0};  // rows not ended
  std::mutex mutex;
  std::exception_ptr error;  // the first, guarded by mutex
};

HostPool::HostPool(unsigned threads) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

HostPool::~HostPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HostPool::submit(Operation operation) {
  if (operation.rows == 0) return operation.finished(nullptr);  // no thread would end its last row
  auto active = std::make_shared<Active>();
  active->operation = std::move(operation);
  active->left = active->operation.rows;
  {
    std::lock_guard lock(mutex_);
    active_.push_back(std::move(active));
  }
  changed_.notify_all();
}

void HostPool::work() {
  for (;;) {
    std::shared_ptr<Active> active;
    std::size_t first = 0;
    {
      std::unique_lock lock(mutex_);
      for (;;) {
        changed_.wait(lock, [&] { return stop_ || !active_.empty(); });
        if (active_.empty()) return;
        active = active_.front();
        first = active->next.fetch_add(active->operation.grain);
        if (first + active->operation.grain >= active->operation.rows)
          active_.pop_front();  // these are its last rows
        if (first < active->operation.rows) break;
      }
    }
    const std::size_t last = std::min(first + active->operation.grain, active->operation.rows);
    try {
      active->operation.body(first, last);
    } catch (...) {
      std::lock_guard lock(active->mutex);
      if (!active->error) active->error = std::current_exception();
    }
    if (active->left.fetch_sub(last - first) == last - first) active->operation.finished(active->error);
  }
}

}  // namespace shard
