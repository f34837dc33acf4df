#include "engine/verified_heads.hpp"

#include <algorithm>

namespace shard {

void VerifiedHeads::verify(const Slot& slot, ThreadPool& pool) {
  if (slot.epoch != epoch_ || slot.index != index_ + 1) verified_.assign(verified_.size(), false);
  epoch_ = slot.epoch;
  index_ = slot.index;
  std::vector<std::uint32_t> fresh;
  for (const Dataset::Location& at : slot.locations)
    if (!verified_[at.shard]) fresh.push_back(at.shard);
  std::sort(fresh.begin(), fresh.end());
  fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
  run_rows(pool, fresh.size(), [&](std::size_t i) { dataset_.shard(fresh[i]).verify_head(); });
  for (const std::uint32_t shard : fresh) verified_[shard] = true;
}

}  // namespace shard
