// shardbench synth: makes a folder of photo-like JPEGs, in class_00 and so on, for tests and timings without
// a data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

namespace shard::bench {

struct SynthOptions {
  std::filesystem::path folder;
  std::uint64_t count = 400;  // 1 to 10,000,000
  std::uint64_t seed = 0;
  std::uint32_t classes = 10;  // 1 to 100
  unsigned jobs = 0;           // threads; 0: one per core
};

struct SynthSummary {
  std::uint64_t images = 0;
  std::uint64_t bytes = 0;
  std::uint64_t pixels = 0;
  double seconds = 0;
};

// Called after each picture, from any thread, one at a time; false stops (Error cancelled).
using SynthProgress = std::function<bool(const SynthSummary&)>;

// Writes folder/class_CC/img_IIIIII.jpg. The bytes depend only on (seed, classes, index) and on libjpeg's
// version. A folder that is not empty may contain only pictures of the same command (seed, classes, indices
// below count), which are then made again. Errors: invalid_argument, io, cancelled.
SynthSummary synthesize(const SynthOptions& options, const SynthProgress& progress);

}  // namespace shard::bench
