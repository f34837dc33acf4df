// CUDA events. They are reused, because making an event costs more than recording one.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/unique_handle.hpp"
#include "cuda/context.hpp"
#include "shard/loader/device.hpp"

namespace shard {

struct EventTraits {
  using type = cudaEvent_t;
  static type invalid() noexcept { return nullptr; }
  static void close(type event) noexcept { cudaEventDestroy(event); }
};
using UniqueEvent = UniqueHandle<EventTraits>;

// Events of a device that are not in use. Thread safe.
class EventPool {
 public:
  explicit EventPool(const CudaContext& context) : context_(context) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  ~EventPool();
  const CudaContext& context() const noexcept { return context_; }
  // An event for the current device.
  UniqueEvent take();
  void give(UniqueEvent event);

 private:
  const CudaContext context_;
  std::mutex mutex_;
  std::vector<UniqueEvent> free_;
};

class CudaEvent final : public Event::Impl {
 public:
  // Records at the end of the work in `stream`, whose device must be the current one. When an event is
  // recorded again, streams that wait for its earlier recording are not affected.
  CudaEvent(std::shared_ptr<EventPool> pool, cudaStream_t stream);
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override { pool_->give(std::move(event_)); }
  // True if the event is known to be over, which it then remains. Does not call CUDA, which would take its
  // lock.
  bool known_over() const noexcept { return over_.load(std::memory_order_acquire); }
  bool done() override;
  void wait() override;
  // CUDA has no wait with a timeout, so this polls.
  bool wait_for(std::chrono::milliseconds timeout) override;
  void* native() noexcept override { return event_.get(); }

 private:
  std::shared_ptr<EventPool> pool_;
  UniqueEvent event_;
  std::atomic<bool> over_{false};
};

// True if nothing needs to wait for the event any longer.
bool known_over(const Event& event);

}  // namespace shard
