// CUDA events, which are used again: making one costs more than recording one.
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

// Events of a device that are not in use. Any thread may use it.
class EventPool {
 public:
  explicit EventPool(const CudaContext& context) : context_(context) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  ~EventPool();
  const CudaContext& context() const noexcept { return context_; }
  // The current device is the one that the event is for.
  UniqueEvent take();
  void give(UniqueEvent event);

 private:
  const CudaContext context_;
  std::mutex mutex_;
  std::vector<UniqueEvent> free_;
};

class CudaEvent final : public Event::Impl {
 public:
  // Records at the end of `stream`'s work; the current device is the stream's. Streams that were told to wait
  // for an event's earlier recording are not disturbed when it is recorded again.
  CudaEvent(std::shared_ptr<EventPool> pool, cudaStream_t stream);
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override { pool_->give(std::move(event_)); }
  // Known without asking CUDA, which takes its lock: once over, an event stays so.
  bool known_over() const noexcept { return over_.load(std::memory_order_acquire); }
  bool done() override;
  void wait() override;
  // CUDA has no wait with an end: it is asked again and again.
  bool wait_for(std::chrono::milliseconds timeout) override;
  void* native() noexcept override { return event_.get(); }

 private:
  std::shared_ptr<EventPool> pool_;
  UniqueEvent event_;
  std::atomic<bool> over_{false};
};

// Nothing has to wait for it any longer.
bool known_over(const Event& event);

}  // namespace shard
