// Which shards were compared with their digests, but for the samples, in the epoch that runs (Verify):
// labels, columns, keys, sizes and tables, and the padding that no digest covers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/system/thread_pool.hpp"
#include "shard/dataset.hpp"
#include "slot/slot.hpp"

namespace shard {

class VerifiedHeads {
 public:
  explicit VerifiedHeads(const Dataset& dataset)
      : dataset_(dataset), verified_(dataset.info().shards.size()) {}

  // Compares those of the batch's shards that no earlier batch of this run of the epoch has read. Throws
  // corrupt, io.
  void verify(const Slot& slot, ThreadPool& pool);

 private:
  const Dataset& dataset_;
  std::vector<bool> verified_;  // by shard
  // Of the last batch: if this one is not the next, the epoch is run again, or from another batch on.
  std::uint64_t epoch_ = 0;
  std::uint64_t index_ = 0;
};

}  // namespace shard
