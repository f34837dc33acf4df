#include "shard/image/memory_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/system/system_memory.hpp"
#include "shard/error.hpp"

namespace shard::image {

std::uint64_t MemoryBudget::default_bytes(std::uint64_t processes) {
  return available_memory_bytes() / 4 * 3 / std::max<std::uint64_t>(processes, 1);
}

MemoryBudget::Share MemoryBudget::take(std::uint64_t size_bytes, const std::atomic<bool>* cancel) {
  constexpr auto kPoll = std::chrono::milliseconds(100);  // how soon a cancel is seen
  if (size_bytes == 0) return {};
  if (size_bytes > size_bytes_)
    throw Error(
        ErrorCode::resource,
        fmt::format("decoding takes {} bytes of memory, and this process may use {} for images: give it "
                    "more memory",
                    size_bytes, size_bytes_));
  std::unique_lock lock(mutex_);
  while (!freed_.wait_for(lock, kPoll, [&] { return free_bytes_ >= size_bytes; }))
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed))
      throw Error(ErrorCode::cancelled, "interrupted while waiting for memory");
  free_bytes_ -= size_bytes;
  return Share(this, GiveBack{size_bytes});
}

void MemoryBudget::give_back(std::uint64_t size_bytes) noexcept {
  {
    const std::lock_guard lock(mutex_);
    free_bytes_ += size_bytes;
  }
  freed_.notify_all();
}

}  // namespace shard::image
