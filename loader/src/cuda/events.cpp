#include "cuda/events.hpp"

#include <thread>

namespace shard {

EventPool::~EventPool() {
  quietly(context_, [&] { free_.clear(); });
}

UniqueEvent EventPool::take() {
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      UniqueEvent event = std::move(free_.back());
      free_.pop_back();
      return event;
    }
  }
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
             "cudaEventCreate");
  return UniqueEvent(event);
}

void EventPool::give(UniqueEvent event) {
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(event));
}

CudaEvent::CudaEvent(std::shared_ptr<EventPool> pool, cudaStream_t stream)
    : pool_(std::move(pool)), event_(pool_->take()) {
  check_cuda(cudaEventRecord(event_.get(), stream), "cudaEventRecord");
}

bool CudaEvent::done() {
  if (known_over()) return true;
  const CudaScope scope(pool_->context());
  const cudaError_t error = cudaEventQuery(event_.get());
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check_cuda(error, "cudaEventQuery");
  over_.store(true, std::memory_order_release);
  return true;
}

void CudaEvent::wait() {
  if (known_over()) return;
  const CudaScope scope(pool_->context());
  check_cuda(cudaEventSynchronize(event_.get()), "cudaEventSynchronize");
  over_.store(true, std::memory_order_release);
}

bool CudaEvent::wait_for(std::chrono::milliseconds timeout) {
  constexpr std::chrono::microseconds kPause{100};
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

bool known_over(const Event& event) {
  const auto* const cuda = dynamic_cast<const CudaEvent*>(event.impl());
  return event.impl() == nullptr || (cuda != nullptr && cuda->known_over());
}

}  // namespace shard
