// What each part of an input pipeline contributes: six ways to feed the same batches to
// the same training step.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/system/parallel.hpp"
#include "commands/matmul/matmul_bench.hpp"
#include "feeds/tier_data.hpp"
#include "shard/loader/loader.hpp"

namespace shard::bench {

struct BatchTimes {
  double load_seconds = 0;      // the consumer waits for a batch in host memory
  double transfer_seconds = 0;  // and then for the transformed batch on the device
  double train_seconds = 0;
  double total() const noexcept { return load_seconds + transfer_seconds + train_seconds; }
};

// Where batches come from. One consumer thread.
class Feed {
 public:
  virtual ~Feed() = default;
  // Waits for the next batch; fills in load and transfer. Errors: io, cancelled.
  virtual BatchTimes next() = 0;
  // The batch of the last next(): delivered samples of the data set, and their indices.
  virtual const std::byte* images() const = 0;
  virtual std::span<const std::uint64_t> samples() const = 0;
  // The image from which row `row` of it was decoded. Empty: it is the stored sample.
  virtual std::filesystem::path image_of(std::size_t row) const {
    (void)row;
    return {};
  }
  virtual void release() = 0;  // the step is done with it
};

struct PipelineOptions {
  unsigned threads = 0;  // 0: one per core
  std::uint64_t batch_size = 256;
  double step_ms = 50;
  unsigned batches = 10;
  unsigned repeat = 3;
  std::size_t prefetch = 4;
  unsigned jobs() const { return thread_count(threads); }
};

struct FeedKind {
  std::string name, how;
  std::function<std::unique_ptr<Feed>()> make;
};
// Each adds one part to the one before: one thread, pageable; workers; + pinned; + prefetch on the host;
// + prefetch on the device. The last one is precomputed shards. `images` must outlive the feeds.
std::vector<FeedKind> feed_kinds(const std::filesystem::path& dataset, const TierImages& images,
                                 const std::shared_ptr<Device>& device, const PipelineOptions& options);

// A step of matrix products that takes about `step_ms`.
class TrainStep {
 public:
  // Calibrates. `multiplier` must outlive it.
  TrainStep(Multiplier& multiplier, double step_ms);
  void run() { multiplier_.multiply(times_); }          // until it is done
  double seconds() const noexcept { return seconds_; }  // measured, with nothing beside it
  std::size_t size() const noexcept { return size_; }
  std::size_t times() const noexcept { return times_; }
  std::string name() const { return multiplier_.name(); }

 private:
  Multiplier& multiplier_;
  std::vector<float> a_, b_;
  std::size_t size_ = 0;
  std::size_t times_ = 0;
  double seconds_ = 0;
};

struct PipelineCase {
  std::string name, how;
  std::string problem;                                        // why it was left out
  std::vector<std::vector<BatchTimes>> runs;                  // by repeat
  double samples_per_second(std::uint64_t batch_size) const;  // median over the repeats
  double utilisation() const;                                 // share of the time in which the device trains
  BatchTimes mean() const;                                    // over all batches
};

// Compares the first batch of each feed with the data set's samples, then runs them in turn, `options.repeat`
// times; batches that were there when a feed began do not count. Errors: cancelled.
std::vector<PipelineCase> bench_pipeline(const std::vector<FeedKind>& kinds,
                                         const std::filesystem::path& dataset, Device& device,
                                         TrainStep& step, const PipelineOptions& options,
                                         const std::atomic<bool>& cancel,
                                         const std::function<void(const std::vector<PipelineCase>&)>& done);

}  // namespace shard::bench
