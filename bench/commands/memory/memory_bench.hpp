// The memory that a loader takes: predicted before anything is allocated, and measured.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shard/loader/memory.hpp"

namespace shard::bench {

struct MemoryCase {
  std::uint64_t batch_size = 0;
  std::string problem;                                 // why it was left out; empty: the rest holds
  TransportKind transport = TransportKind::automatic;  // taken
  std::string reason;
  LoaderMemory predicted;         // plan_memory()
  LoaderMemory measured;          // as the loader counts
  std::uint64_t free_before = 0;  // of the device, as it says: without the loader and with it
  std::uint64_t free_after = 0;
  std::uint64_t process_before = 0;  // anonymous memory of this process (RssAnon)
  std::uint64_t process_after = 0;
  std::uint64_t batches = 0;
};

struct MemoryBenchOptions {
  LoaderOptions loader;  // batch_size is set by each case; the order is shuffled, its tail wraps
  std::vector<std::uint64_t> batch_sizes{1, 8, 32, 128, 256};
};

// Runs one loader after the other. Each runs until every slot was filled twice and, depending on the
// transport, all shards are registered or all samples resident. Errors: invalid_argument (a batch size, its
// bounds), cancelled. What a loader throws becomes the case's problem.
std::vector<MemoryCase> bench_memory(const Dataset& dataset, const std::shared_ptr<Device>& device,
                                     const MemoryBenchOptions& options, const std::atomic<bool>& cancel,
                                     const std::function<void(const std::vector<MemoryCase>&)>& done);

// |measured - predicted| / predicted. 0 if both are 0, 1 if only the prediction is 0.
double difference(std::uint64_t predicted, std::uint64_t measured) noexcept;

}  // namespace shard::bench
