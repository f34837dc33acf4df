// How much staging memory `staged` uses, and how it is written.
//
// The copy engine reads what the processor wrote a moment ago. If the buffers stay in the last-level cache
// meanwhile, neither these writes nor these reads go to memory. If they do not fit there, stores past the
// caches are cheaper.
//
// H200, 8 threads, batches of 38.5 MB, share of the link:
//
//                   plain stores   past the caches
//   five buffers    0.73           0.80 to 0.83
//   three buffers   0.96           0.83
#pragma once

#include <cstddef>
#include <cstdint>

namespace shard {

struct StagingPlan {
  std::size_t buffers = 1;  // batches in staging memory: being filled, or not yet read by the device
  bool cached = false;      // write with plain stores, which stay in the cache
};

// Bytes of the processor's last cache; 0: not known.
std::uint64_t last_cache_bytes() noexcept;

// `batch_bytes`: the most that a batch takes; greater than 0. The plan has at most prefetch + 1 buffers.
// If at least two of them fit into half of the cache, it has no more than fit there, and more than three
// only if they take at most 32 MiB together; they are filled with plain stores. Else it has all of them,
// filled past the caches.
StagingPlan staging_plan(std::uint64_t batch_bytes, std::uint32_t prefetch,
                         std::uint64_t cache_bytes) noexcept;

}  // namespace shard
