// Makes batches row by row on all threads, and copies them to the device while the next ones are made. This
// is the fastest way for a baseline that decodes (or reads) on the fly.
//
//   makers: rows -> slot (pinned) -- last row --> stream: copy -> transform -> batch -> event -> slot is free
//
// On the host device, rows without a transform are made directly in the batch, so nothing is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "harness/measure.hpp"
#include "shard/loader/device.hpp"

namespace shard::bench {

// Makes rows. Each thread has its own.
class RowMaker {
 public:
  virtual ~RowMaker() = default;
  // Row `index` of the run. What it throws ends the run.
  virtual void make(std::uint64_t index, std::span<std::byte> row) = 0;
};

struct BatchPipelineOptions {
  SampleSpec made;                  // a row as the makers write it
  TransformOptions transform = {};  // on the device; `normalization` must be set where it normalises
  std::uint64_t batch_size = 256;
  unsigned threads = 1;
  std::size_t slots = 4;
  std::function<std::unique_ptr<RowMaker>()> maker;
};

struct BatchRun : Elapsed {
  std::uint64_t rows = 0;
  double rate() const noexcept { return seconds > 0 ? static_cast<double>(rows) / seconds : 0; }
};

class BatchPipeline {
 public:
  // Errors: invalid_argument (transform), resource.
  BatchPipeline(std::shared_ptr<Device> device, BatchPipelineOptions options);
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;
  ~BatchPipeline();

  // Makes rows 0 to rows - 1 and returns when the last one is on the device. The last batch may be short.
  // `out`: empty, or room for all delivered rows, which are then copied back. Throws what a maker throws;
  // cancelled.
  BatchRun run(std::uint64_t rows, std::span<std::byte> out = {});

 private:
  struct Slot;
  struct Run;
  void work(Run& run, RowMaker& maker);
  void wait_for(Run& run, Slot& slot, std::uint64_t batch);
  void submit(Run& run, Slot& slot, std::uint64_t batch);

  std::shared_ptr<Device> device_;
  BatchPipelineOptions options_;
  SampleSpec delivered_;
  bool on_host_ = false;
  bool computes_ = false;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<RowMaker>> makers_;
  std::unique_ptr<Stream> stream_;
  std::mutex stream_mutex_;
};

}  // namespace shard::bench
