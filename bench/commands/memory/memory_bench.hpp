// The memory that a loader takes: predicted before anything is allocated, and measured.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shard/loader/loader.hpp"

namespace shard::bench {

struct LoaderMemory {
  std::uint64_t device_bytes = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t registered_bytes = 0;
  bool operator==(const LoaderMemory&) const = default;
};

// With slots = prefetch + 1, batch in samples, and bytes of a stored and of a delivered sample:
//
//   device     = slots x (batch x delivered + raw + columns) + resident
//   raw        = batch x stored where the transform is not the identity; 0 where samples are read where they
//   are
//                mapped (host device, mapped) or nothing is to be computed
//   columns    = each column's batch x row, rounded up to 256
//   resident   = transport resident: min(samples, budget / stored) x stored
//   pinned     = slots x columns + staging
//   staging    = staged: buffers x batch x stored (staging_plan.hpp); direct: slots x (batch x pitch + 4096);
//   mapped: 0 pitch      = stored; of codec none with samples that are no multiple of the disk's alignment:
//   stored rounded up
//                to 4096, and 4096 more
//   registered = mapped, not on the host device: the samples of all shards as they are stored (shuffled
//   order)
//
// Compressed frames on the way (direct) and the parameters of transforms are not in it. `link`: how samples
// come to the device: mapped, staged or direct. `free_bytes`: of the device, for the resident budget that is
// not stated. Throws what asking the disk for its alignment throws.
LoaderMemory predict_memory(const Dataset& dataset, const DeviceInfo& device, const LoaderOptions& options,
                            TransportKind link, std::uint64_t free_bytes);

// What `automatic` will take, and resident below itself, for a shuffled order; others: themselves.
TransportKind predict_link(const Dataset& dataset, const DeviceInfo& device, const LoaderOptions& options);

struct MemoryCase {
  std::uint64_t batch_size = 0;
  std::string problem;                                 // why it was left out; empty: the rest holds
  TransportKind link = TransportKind::automatic;       // predicted
  TransportKind transport = TransportKind::automatic;  // taken
  std::string reason;
  LoaderMemory predicted;
  LoaderMemory measured;          // as the loader counts
  std::uint64_t free_before = 0;  // of the device, as it says: without the loader and with it
  std::uint64_t free_after = 0;
  std::uint64_t process_before = 0;  // anonymous memory of this process (RssAnon)
  std::uint64_t process_after = 0;
  std::uint64_t batches = 0;
};

struct MemoryOptions {
  LoaderOptions loader;  // batch_size is set by each case; the order is shuffled, its tail wraps
  std::vector<std::uint64_t> batch_sizes{1, 8, 32, 128, 256};
};

// One loader after the other, each until every slot was filled twice, and all shards are registered, or
// samples resident, where they are. Errors: invalid_argument (a batch size, its bounds), cancelled. What a
// loader throws is the case's problem.
std::vector<MemoryCase> bench_memory(const std::shared_ptr<const Dataset>& dataset,
                                     const std::shared_ptr<Device>& device, const MemoryOptions& options,
                                     const std::atomic<bool>& cancel,
                                     const std::function<void(const std::vector<MemoryCase>&)>& done);

// |measured - predicted| / predicted; 0 where both are 0, 1 where only the prediction is.
double difference(std::uint64_t predicted, std::uint64_t measured) noexcept;

}  // namespace shard::bench
