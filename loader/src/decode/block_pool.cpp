#include "decode/block_pool.hpp"

#include <algorithm>
#include <utility>

namespace shard {

BlockPool::Taken BlockPool::take(std::uint64_t size) {
  Idle found;
  {
    const std::lock_guard lock(mutex_);
    auto best = idle_.end();
    for (auto one = idle_.begin(); one != idle_.end(); ++one) {
      const std::uint64_t bytes = one->block->size_bytes();
      if (bytes < size || bytes / 2 > size) continue;
      if (best == idle_.end() || bytes < best->block->size_bytes()) best = one;
    }
    if (best != idle_.end()) {
      found = std::move(*best);
      idle_.erase(best);
    }
  }
  if (!found.block) found.block = device_->allocate_device(std::max<std::uint64_t>(size, 1));
  Taken taken;
  taken.ready = std::move(found.ready);
  taken.block = std::shared_ptr<Block>(found.block.release(), [pool = shared_from_this()](Block* block) {
    pool->give_back(std::unique_ptr<Block>(block));
  });
  return taken;
}

void BlockPool::give_back(std::unique_ptr<Block> block) noexcept {
  try {
    Idle idle{std::move(block), {}};
    if (device_->info().kind != DeviceKind::host) {
      const std::optional<StreamRef> stream = last_stream_ ? last_stream_() : std::nullopt;
      if (!stream) return;
      idle.ready = device_->record(*stream);
    }
    Idle freed;  // after the lock
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(idle));
    if (idle_.size() > kMostIdle) {
      freed = std::move(idle_.front());
      idle_.erase(idle_.begin());
    }
  } catch (...) {  // the memory is freed
  }
}

}  // namespace shard
