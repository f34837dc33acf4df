// Compares the rate of the loader with its limit, measured in the same process.
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
  std::uint32_t first_epochs = 0;  // each is timed, from the second batch of the first loader on
  double first_seconds = 0;        // all that comes in so many is counted, the making of the loaders included
};

struct LoadSample {
  double samples_per_second = 0;
  double bytes_per_second = 0;  // of samples without codec, whatever they take in the shards
  double cores = 0;             // CPU seconds of the process per second
};

struct LoadResult {
  double limit_bytes_per_second = 0;
  std::string limit_is;
  // With a codec: bytes of a frame on average, and the limit in bytes of frames. The latter is 0 where frames
  // are not what the limit carries: their samples are decoded before they go over the link.
  double frame_bytes = 0;
  double limit_frame_bytes_per_second = 0;
  double random_bytes_per_second = 0;  // transport direct: the disk's, read as the loader reads it
  std::string random_is;
  double first_batch_seconds = 0;    // from making the first loader to its first batch on the device
  std::vector<double> first_epochs;  // samples per second of all loaders together
  double first_seconds_rate = 0;     // samples per second
  std::vector<LoadSample> samples;
  std::vector<LoaderStats> stats;  // by device
};

// Measures the limit and then the loaders, alternately, `repeats` times. The limit is in stored bytes: the
// disk for transport direct, else the link of a GPU, or a bare gather on the host. Each device has a loader
// on its own thread; device i is rank i. The consumer waits for each batch on a stream and releases it.
// `done` is called before the first repeat and after each.
LoadResult bench_load(const Dataset& dataset, std::span<const std::shared_ptr<Device>> devices,
                      const LoadCase& load, const std::function<void(const LoadResult&)>& done = {});

}  // namespace shard::bench
