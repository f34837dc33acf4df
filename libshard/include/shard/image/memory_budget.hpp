// How much memory images may take together while they are decoded.
//
// Most images are decoded in a few rows; a progressive, interlaced or turned one takes up to 16 bytes a
// pixel. A few large ones at the same time can take more than the system grants this process, and it would be
// killed. Threads that share a budget wait for each other instead: what an image takes is known from its
// header, before it is allocated.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "shard/error.hpp"

namespace shard::image {

// Thread safe. Must outlive its shares.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t size_bytes) noexcept
      : size_bytes_(size_bytes), free_bytes_(size_bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Three quarters of the memory that is available to this process now, in equal parts for `processes` that
  // share it.
  static std::uint64_t default_bytes(std::uint64_t processes = 1);

  struct GiveBack {
    std::uint64_t size_bytes = 0;
    void operator()(MemoryBudget* budget) const noexcept { budget->give_back(size_bytes); }
  };
  // A part of the budget, until it is destroyed or reset. Empty: of nothing.
  using Share = std::unique_ptr<MemoryBudget, GiveBack>;

  // Waits until so much is free. A thread that holds a share must not ask for a second one.
  // Errors: resource, at once, when it is more than the whole budget; cancelled, within a fraction of a
  // second.
  Share take(std::uint64_t size_bytes, const std::atomic<bool>* cancel = nullptr);

  std::uint64_t size_bytes() const noexcept { return size_bytes_; }

 private:
  void give_back(std::uint64_t size_bytes) noexcept;

  const std::uint64_t size_bytes_;
  std::uint64_t free_bytes_;
  std::mutex mutex_;
  std::condition_variable freed_;
};

}  // namespace shard::image
