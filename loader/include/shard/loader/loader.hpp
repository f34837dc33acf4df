// Loader: shuffled, transformed batches of a data set on a device.
//
//   for (Batch& batch : loader.epoch(0)) {
//     batch.wait_on(stream);             // a Stream or cuda_stream(s); to read on the host: batch.wait()
//     train(batch.images(), stream);     // queued in `stream`
//   }                                    // the memory is reused only after the work in `stream`
//
// A Loader owns its threads, pinned memory and device memory, within the bounds of its options. It may be
// destroyed while batches are alive: their memory lives as long as they do. It cannot be used after fork():
// calls in a child are refused.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/loader/batch.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/loader_options.hpp"
#include "shard/loader/stats.hpp"

namespace shard {

class Loader {
 public:
  // Errors: invalid_argument (naming option and bounds), resource, not_found, corrupt, io.
  Loader(Dataset dataset, std::shared_ptr<Device> device, LoaderOptions options);
  Loader(Loader&&) noexcept;
  // Stops and joins its threads within a second, and frees all memory except that of the batches that still
  // exist. They stay valid.
  ~Loader();

  // With the views that set_views() or resume() has set, also where the epoch that runs has others.
  // Valid until one of them is called.
  const LoaderOptions& options() const noexcept;
  // A delivered sample of one of these views; those of a batch are in Batch::spec().
  // If batches have sizes of their own (buckets, padded), its rows and columns are 0.
  // Throws invalid_argument if there is no such view.
  SampleSpec delivered(std::size_t view = 0) const;
  // Of this rank; all ranks have the same number.
  std::uint64_t batches_per_epoch() const noexcept;

  // Drops prefetched batches of another epoch. Waits until the loader's thread has finished its current
  // batch.
  void start_epoch(std::uint64_t epoch);
  // Other views from the epoch on that starts next, in place of LoaderOptions::transform and further_views
  // (progressive resizing). An epoch that runs goes on with its own; batches of the next one that are
  // already prepared are dropped. When that epoch starts, the loader makes its threads and memory again,
  // within the same bounds, as a new loader would; batches that still exist stay valid, and samples that
  // stayed on the device are uploaded again. If this fails (resource), the epoch has not started: set other
  // views, or start it again. Called twice, the last call counts. Throws invalid_argument, naming view and
  // bound, and changes nothing.
  void set_views(TransformOptions transform, std::vector<TransformOptions> further_views = {});
  // From the epoch on that starts next, the same samples from another place, such as a conversion that has
  // ended meanwhile. Transport and memory are chosen again, as by a new loader; batches are the same. Throws
  // invalid_argument, and changes nothing, if `dataset` has other samples, or another order of them.
  void set_data(Dataset dataset);
  // The next batch, or nothing at the end of the epoch. Throws the error of a worker, or what wait() of a
  // batch of this epoch threw, naming shard and sample, and the same again until start_epoch() or resume().
  // Throws cancelled after cancel(), and resource if all slots are lent.
  std::optional<Batch> next();
  // True if next() would not wait for the loader; false if `timeout` passed before. For callers that must
  // check something else from time to time, such as an interpreter its signals. The wait counts in
  // starved_seconds.
  bool wait_ready(std::chrono::milliseconds timeout);
  // May be called from any thread at any time. next() throws cancelled from now on, even if it is waiting,
  // until the next start_epoch() or resume(). If cancel() and start_epoch() run at the same time, the later
  // one wins: a cancel() that comes after start_epoch() has started cancels the new epoch, even before
  // start_epoch() returns.
  void cancel() noexcept;

  LoaderState state() const;
  // Continues from a state, with the views of the state: those of its epoch for the rest of that epoch, and
  // those that were set for the epochs after it. To go on with this loader's views, clear LoaderState::views
  // and next_views before. Throws invalid_argument, naming what differs, if the state is of another data set,
  // seed, global batch size or sequence (order, window, tail, partition).
  void resume(const LoaderState& state);
  LoaderStats stats() const;

  // A range for `for (Batch& batch : loader.epoch(e))`. After a resume() inside of this epoch it is the rest
  // of it; after a resume() at its end it is empty once, and a further call is a new run of the epoch.
  class Epoch;
  Epoch epoch(std::uint64_t epoch);

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  Loader& operator=(Loader&&) = delete;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A single-pass range over the rest of an epoch. Each batch is released when the next one is requested,
// unless it was moved out.
class Loader::Epoch {
 public:
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(Epoch& epoch) : epoch_(&epoch) { ++*this; }
    Batch& operator*() const { return *epoch_->batch_; }
    Iterator& operator++() {
      epoch_->batch_.reset();
      epoch_->batch_ = epoch_->loader_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !epoch_->batch_; }

   private:
    Epoch* epoch_;
  };

  explicit Epoch(Loader& loader) : loader_(&loader) {}
  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  Loader* loader_;
  std::optional<Batch> batch_;
};

}  // namespace shard
