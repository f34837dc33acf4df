// The measurements behind `shardbench transform`: operations of augmentation on samples that lie in the
// device's memory, without a link and without a disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shard/loader/device.hpp"

namespace shard::bench {

struct TransformCase {
  std::string name;
  std::vector<Operation> operations;
  std::string problem;  // why it was left out
  std::vector<double> samples_per_second;
  // Of a thread of the host that draws crops and programs for samples.
  double draws_per_second = 0;
};

struct TransformBenchOptions {
  std::uint32_t side = 256;  // stored rows and columns, of u8 RGB
  std::uint32_t size = 224;  // delivered ones
  std::uint64_t batch_size = 256;
  DType dtype = DType::f16;  // delivered, as NCHW
  unsigned repeat = 5;
  double seconds = 0.5;
  std::vector<std::string> cases;  // names; empty: all
};

struct TransformResult {
  std::vector<TransformCase> cases;  // the first has no operations
  // Bytes read and written a second by copies of stored samples in the device's memory, one for each repeat.
  std::vector<double> memory_bytes_per_second;
  // What a transform reads and writes of a sample at least: all of it, and what is delivered.
  std::uint64_t stored_bytes = 0;
  std::uint64_t delivered_bytes = 0;
};

// Every operation alone, policies and chains; after a random-resized-crop and a flip.
std::vector<TransformCase> transform_cases();

// In each repeat: the limit, then each case once, as the loader works: batches take turns in two streams on a
// GPU. Errors: invalid_argument (options, naming the bounds; an unknown case), cancelled. What a transform
// throws becomes the case's problem.
TransformResult bench_transform(Device& device, const TransformBenchOptions& options,
                                const std::atomic<bool>& cancel,
                                const std::function<void(const TransformResult&)>& done);

}  // namespace shard::bench
