// Rate of the loader against what carries its bytes, measured in the same process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shard/loader/loader.hpp"

namespace shard::bench {

struct LoadCase {
  LoaderOptions options;
  double seconds = 2.0;  // of each repeat, at least one epoch of it
  std::uint32_t repeats = 3;
  std::uint32_t first_epochs = 0;  // timed each for itself, from the second batch of the first loader on
};

struct LoadSample {
  double samples_per_second = 0;
  double bytes_per_second = 0;  // stored bytes
  double cores = 0;             // CPU seconds of the process per second
};

struct LoadResult {
  double limit_bytes_per_second = 0;
  std::string limit_is;
  double random_bytes_per_second = 0;  // transport direct: the disk's, read as the loader reads it
  std::string random_is;
  double first_batch_seconds = 0;    // from making the first loader to its first batch on the device
  std::vector<double> first_epochs;  // samples per second of all loaders together
  std::vector<LoadSample> samples;
  std::vector<LoaderStats> stats;  // by device
};

// Measures the limit (of stored bytes: of transport direct the disk, else of a GPU its link, of the host a
// bare gather), then the loaders, `repeats` times in turn. One loader a device, each on a thread of its own:
// device i is rank i of as many. The consumer takes each batch on a stream and gives it back. `done`: before
// the first repeat and after each.
LoadResult bench_load(const Dataset& dataset, std::span<const std::shared_ptr<Device>> devices,
                      const LoadCase& load, const std::function<void(const LoadResult&)>& done = {});

}  // namespace shard::bench
