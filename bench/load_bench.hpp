// Rate of the loader against what carries its bytes, measured in the same process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shard/loader/loader.hpp"

namespace shard::bench {

struct LoadCase {
  LoaderOptions options;
  double seconds = 2.0;  // of each repeat, at least one epoch of it
  std::uint32_t repeats = 3;
};

struct LoadSample {
  double samples_per_second = 0;
  double bytes_per_second = 0;  // stored bytes
  double cores = 0;             // CPU seconds of the process per second
};

struct LoadResult {
  double limit_bytes_per_second =
      0;  // CUDA: pinned host to device, large blocks; host: a bare gather on the same threads
  std::string limit_is;
  double first_batch_seconds = 0;  // from making the loader to its first batch on the device
  std::vector<LoadSample> samples;
  LoaderStats stats;
};

// Measures the limit, then the loader, `repeats` times in turn; the consumer takes each batch on a stream and
// gives it back.
LoadResult bench_load(const std::shared_ptr<const Dataset>& dataset, const std::shared_ptr<Device>& device,
                      const LoadCase& load);

// Writes a data set of pseudo-random bytes, `samples` of `spec`, in shards of 256 MiB, unless the folder
// holds one already.
void make_random_dataset(const std::string& folder, std::uint64_t samples, const SampleSpec& spec,
                         unsigned threads);

}  // namespace shard::bench
