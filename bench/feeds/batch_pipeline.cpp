#include "feeds/batch_pipeline.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <utility>

#include "base/system/parallel.hpp"
#include "feeds/sample_reference.hpp"
#include "harness/interrupt.hpp"
#include "shard/error.hpp"

namespace shard::bench {

struct BatchPipeline::Slot {
  std::unique_ptr<Block> rows;   // pinned; none where the batch itself is written
  std::unique_ptr<Block> raw;    // device, before the transform; none where there is none, and on the host
  std::unique_ptr<Block> batch;  // device
  std::byte* target = nullptr;   // where makers write

  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t owner = 0;  // the batch whose rows it takes
  std::uint64_t left = 0;   // rows that are still to be made
  bool submitted = false;
  Event done;
};

struct BatchPipeline::Run {
  std::uint64_t rows = 0;
  std::span<std::byte> out;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};
};

BatchPipeline::BatchPipeline(std::shared_ptr<Device> device, BatchPipelineOptions options)
    : device_(std::move(device)),
      options_(std::move(options)),
      delivered_(check_transform(options_.made, options_.transform)),
      on_host_(device_->info().kind == DeviceKind::host),
      computes_(!is_identity(options_.made, options_.transform)),
      stream_(device_->create_stream()) {
  const std::uint64_t made_bytes = options_.batch_size * options_.made.size_bytes();
  for (std::size_t i = 0; i < options_.slots; ++i) {
    auto slot = std::make_unique<Slot>();
    slot->batch = device_->allocate_device(options_.batch_size * delivered_.size_bytes());
    if (computes_ || !on_host_) slot->rows = device_->allocate_pinned(made_bytes);
    if (computes_ && !on_host_) slot->raw = device_->allocate_device(made_bytes);
    slot->target = slot->rows ? slot->rows->data() : slot->batch->data();
    slots_.push_back(std::move(slot));
  }
  for (unsigned i = 0; i < options_.threads; ++i) makers_.push_back(options_.maker());
}

BatchPipeline::~BatchPipeline() = default;

BatchRun BatchPipeline::run(std::uint64_t rows, std::span<std::byte> out) {
  Run run;
  run.rows = rows;
  run.out = out;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i]->owner = i;
    slots_[i]->left = std::min(options_.batch_size, rows - std::min(rows, i * options_.batch_size));
    slots_[i]->submitted = false;
    slots_[i]->done = {};
  }
  const RunClock clock;
  try {
    run_threads(options_.threads, [&](unsigned thread) { work(run, *makers_[thread]); });
  } catch (...) {
    stream_->synchronize();
    throw;
  }
  stream_->synchronize();
  return {clock.elapsed(), rows};
}

void BatchPipeline::work(Run& run, RowMaker& maker) {
  try {
    for (std::uint64_t row = run.next++; row < run.rows && !run.failed; row = run.next++) {
      if (interrupted()) throw Error(ErrorCode::cancelled, "stopped");
      const std::uint64_t batch = row / options_.batch_size;
      Slot& slot = *slots_[batch % slots_.size()];
      wait_for(run, slot, batch);
      if (run.failed) return;
      const std::uint64_t size = options_.made.size_bytes();
      maker.make(row, {slot.target + row % options_.batch_size * size, size});
      const std::scoped_lock lock(slot.mutex);
      if (--slot.left == 0) submit(run, slot, batch);
    }
  } catch (...) {
    run.failed = true;
    for (const auto& slot : slots_) {
      const std::scoped_lock lock(slot->mutex);
      slot->changed.notify_all();
    }
    throw;
  }
}

// Until the slot takes rows of `batch`. Who comes first after the batch before it waits for the device.
void BatchPipeline::wait_for(Run& run, Slot& slot, std::uint64_t batch) {
  std::unique_lock lock(slot.mutex);
  while (slot.owner != batch && !run.failed) {
    if (slot.submitted && slot.owner + slots_.size() == batch) {
      slot.done.wait();
      slot.owner = batch;
      slot.left = std::min(options_.batch_size, run.rows - batch * options_.batch_size);
      slot.submitted = false;
      slot.changed.notify_all();
      return;
    }
    slot.changed.wait(lock);
  }
}

// slot.mutex is held.
void BatchPipeline::submit(Run& run, Slot& slot, std::uint64_t batch) {
  const std::uint64_t first = batch * options_.batch_size;
  const std::uint64_t rows = std::min(options_.batch_size, run.rows - first);
  const std::uint64_t made = options_.made.size_bytes();
  const std::scoped_lock lock(stream_mutex_);
  if (slot.rows && !(on_host_ && computes_)) {
    const CopyItem item{computes_ ? slot.raw->data() : slot.batch->data(), slot.target, rows * made};
    stream_->copy({&item, 1});
  }
  if (computes_)
    transform_rows(*stream_, options_.made, options_.transform,
                   options_.transform.normalization.value_or(Normalization{}),
                   slot.raw ? slot.raw->data() : slot.target, first, rows, slot.batch->data());
  if (!run.out.empty()) {
    const std::uint64_t size = delivered_.size_bytes();
    const CopyItem item{run.out.data() + first * size, slot.batch->data(), rows * size};
    stream_->copy_to_host({&item, 1});
  }
  slot.done = stream_->record();
  slot.submitted = true;
  slot.changed.notify_all();
}

}  // namespace shard::bench
