// Pinned memory in which batches are staged: a few buffers, which batches take in turn.
//
//   begin() ──▶ filling, by the pool's threads ──▶ Buffer::copied set: the device reads it ──▶ begin() again
//
// Used by a loader's feeder thread only. Batches queue their copies in the order in which they began. A batch
// that fails leaves its buffer as it was.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/system/stopwatch.hpp"
#include "base/system/thread_pool.hpp"
#include "shard/loader/device.hpp"
#include "transport/memory_plan.hpp"

namespace shard {

struct StagingBuffer {
  std::unique_ptr<Block> memory;
  Event copied;  // the device has read the buffer; set by the code that queued the copies out of it
};

class StagingRing {
 public:
  // Allocates all buffers. If it `adapts`, it decides from then on how many of the pool's threads take work.
  // Errors: resource.
  StagingRing(Device& device, ThreadPool& pool, const StagingMemory& memory, bool adapts = true);
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  // False: begin() would wait for the device.
  bool has_room() const;
  // True: the device has read all buffers, so the ring may be destroyed. Does not wait.
  bool may_end() const;
  // The next buffer. Waits for the copies out of it. Errors: io (they failed).
  StagingBuffer& begin();
  // True: fill buffers with stores that stay in the cache.
  bool cached() const noexcept { return cached_; }
  std::uint64_t size_bytes() const noexcept { return size_bytes_; }

 private:
  static bool over(const StagingBuffer& buffer);
  void adapt_threads();

  ThreadPool& pool_;
  bool cached_;
  bool adapts_;
  std::uint64_t size_bytes_;
  std::vector<StagingBuffer> buffers_;
  std::size_t next_ = 0;
  std::size_t threads_;
  std::uint64_t batches_ = 0;
  Stopwatch since_;
  std::chrono::nanoseconds idle_;
};

}  // namespace shard
