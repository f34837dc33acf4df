#include "transport/staging_ring.hpp"

#include <algorithm>

#include "base/system/guarded_read.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kAdaptBatches = 16;
constexpr double kMostIdle = 0.08;  // of the time
constexpr double kLeastIdle = 0.02;

}  // namespace

StagingRing::StagingRing(Device& device, ThreadPool& pool, const StagingMemory& memory, bool adapts)
    : pool_(pool),
      cached_(memory.plan.cached),
      adapts_(adapts),
      size_bytes_(memory.size_bytes()),
      buffers_(memory.plan.buffers),
      threads_(pool.threads()),
      idle_(pool.idle()) {
  for (StagingBuffer& buffer : buffers_) buffer.memory = device.allocate_pinned(memory.batch_bytes);
}

bool StagingRing::over(const StagingBuffer& buffer) {
  try {
    return buffer.copied.done();
  } catch (...) {  // the copy failed, and its batch reports that
    return true;
  }
}

bool StagingRing::has_room() const { return over(buffers_[next_]); }

bool StagingRing::may_end() const {
  if (!std::all_of(buffers_.begin(), buffers_.end(), over)) return false;
  for (const StagingBuffer& buffer : buffers_) {
    try {
      buffer.copied.wait();
    } catch (...) {  // the copy failed, so it has ended
    }
  }
  return true;
}

StagingBuffer& StagingRing::begin() {
  adapt_threads();
  StagingBuffer& buffer = buffers_[next_];
  try {
    buffer.copied.wait();
  } catch (const UnreadablePage&) {  // its batch reports that
  }
  next_ = (next_ + 1) % buffers_.size();
  return buffer;
}

// Lets only as many threads work as keep the link busy. More threads fill the ring in bursts, which take
// memory bandwidth from the copy engine (H200: 0.90 of the link with 8 threads, 0.96 with 6 of them).
void StagingRing::adapt_threads() {
  if (!adapts_ || ++batches_ % kAdaptBatches != 0) return;
  const std::chrono::nanoseconds idle = pool_.idle();
  const double share = std::chrono::duration<double>(idle - idle_).count() / since_.restart();
  idle_ = idle;
  if (share > kMostIdle && threads_ > 1)
    --threads_;
  else if (share < kLeastIdle && threads_ < pool_.threads())
    ++threads_;
  else
    return;
  pool_.use_threads(threads_);
}

}  // namespace shard
