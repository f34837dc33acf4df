// staged: threads copy (or decompress) the samples of a batch into pinned memory, and one copy takes them to
// the device. Of a data set on a server, a device that reads host memory reads samples that are mapped in
// place, and others where the threads put them.
#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include "base/system/stopwatch.hpp"
#include "codec/sample_errors.hpp"
#include "fields/views.hpp"
#include "transport/choose.hpp"
#include "transport/sample_io.hpp"
#include "transport/staging_ring.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

// Whether the targets of samples are memory of their batch alone: neither what consumers read,
// nor what stays on the device.
bool stages_to_target(const Dataset& dataset, const LoaderOptions& options) {
  return options.transport != TransportKind::resident && !delivers_stored(dataset.info(), options);
}

class Staged final : public Transport {
 public:
  explicit Staged(const TransportContext& context)
      : context_(context),
        in_place_(context.device->info().reads_host_memory &&
                  source_of(*context.dataset) != SampleSource::files),
        to_target_(in_place_ && stages_to_target(*context.dataset, *context.options)),
        ring_(*context.device, *context.pool,
              staging_memory(context.dataset->info(), *context.options, context.cache_bytes),
              !context.dataset->is_unconverted()),
        batches_(std::size_t{context.options->prefetch} + 1) {}

  TransportKind kind() const noexcept override { return TransportKind::staged; }

  bool has_room() const override { return ring_.has_room(); }
  // Threads that read files wait for each of them, so they have the next batch at hand.
  std::size_t depth() const noexcept override { return context_.dataset->is_unconverted() ? 3 : 2; }

  void begin(Slot& slot) override {
    Batch& batch = batches_[slot.number];
    batch.buffer = to_target_ ? nullptr : &ring_.begin();
    batch.filled = {};
    find_samples(slot);
    if (batch.staged.empty()) return;
    submit_rows(*context_.pool, batch.staged.size(), batch.filled,
                [this, filling = &slot, &batch](std::size_t i) {
                  context_.check_wanted();
                  const std::uint32_t row = batch.staged[i];
                  const FetchItem& item = filling->fetch[row];
                  stage_row(*context_.dataset, *context_.forms[item.part], item, place_of(batch, item),
                            filling->verify, ring_.cached());
                });
  }

  void end(Slot& slot) override {
    Batch& batch = batches_[slot.number];
    if (batch.filled.valid()) {
      const Stopwatch watch;
      batch.filled.get();
      storage_seconds_ += watch.seconds();
    }
    if (to_target_) return queue_copies(*context_.copy_stream, slot, {});
    copy_rows(*context_.copy_stream, slot, copies_, [&](std::size_t row) { return batch.sources[row]; });
    batch.buffer->copied = slot.copied_event;
  }

  void skip(Slot& slot) override { batches_[slot.number].sources.clear(); }

  bool wait(const Slot& slot, std::chrono::microseconds time) const override {
    return wait_filled(batches_[slot.number].filled, time);
  }

  std::span<const std::byte* const> sources(const Slot& slot) const override {
    if (!to_target_) return {};
    return batches_[slot.number].sources;
  }

  LoaderStats stats() const noexcept override {
    return {.storage_seconds = storage_seconds_, .pinned_bytes = ring_.size_bytes()};
  }

 private:
  // The batch in a slot.
  struct Batch {
    StagingBuffer* buffer = nullptr;        // null: samples are staged where the device reads them
    std::vector<const std::byte*> sources;  // where each sample is: in its mapping, or staged
    std::vector<std::uint32_t> staged;      // rows of Slot::fetch
    std::future<void> filled;               // by the pool's threads
  };

  static std::byte* place_of(const Batch& batch, const FetchItem& item) {
    return batch.buffer == nullptr ? item.target : batch.buffer->memory->data() + item.offset;
  }

  // A device that reads host memory reads samples where they are mapped,
  // if the host need not decode or verify them.
  void find_samples(const Slot& slot) {
    Batch& batch = batches_[slot.number];
    batch.sources.clear();
    batch.staged.clear();
    for (std::uint32_t row = 0; row < slot.fetch.size(); ++row) {
      const FetchItem& item = slot.fetch[row];
      const StoredForm& form = *context_.forms[item.part];
      if (in_place_ && !slot.verify && !form.decoded_by_host() && is_mapped(item)) {
        batch.sources.push_back(mapped_bytes(*context_.dataset, form, item).data());
      } else {
        batch.sources.push_back(place_of(batch, item));
        batch.staged.push_back(row);
      }
    }
  }

  bool is_mapped(const FetchItem& item) const {
    const ShardReader& shard = context_.dataset->shard(item.at.shard);
    if (item.first_of_shard) check_alive(shard);
    return shard.samples_mapped();
  }

  TransportContext context_;
  const bool in_place_;   // the device reads host memory; a folder would use transport mapped
  const bool to_target_;  // and samples are staged in memory that only it reads: there are no copies
  StagingRing ring_;
  std::vector<Batch> batches_;    // by slot
  std::vector<CopyItem> copies_;  // scratch
  double storage_seconds_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_staged(const TransportContext& context) {
  return std::make_unique<Staged>(context);
}

}  // namespace shard
