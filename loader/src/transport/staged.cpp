// staged: threads copy (or decompress) the samples of a batch into pinned memory, and one copy takes them to
// the device.
#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include "base/stopwatch.hpp"
#include "transport/sample_io.hpp"
#include "transport/staging_ring.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

class Staged final : public Transport {
 public:
  explicit Staged(const TransportContext& context)
      : context_(context),
        ring_(*context.device, *context.pool,
              staging_memory(context.dataset->info(), *context.options, context.cache_bytes)),
        batches_(std::size_t{context.options->prefetch} + 1) {}

  TransportKind kind() const noexcept override { return TransportKind::staged; }

  bool has_room() const override { return ring_.has_room(); }

  void begin(Slot& slot) override {
    StagingBuffer& buffer = ring_.begin();
    Batch& batch = batches_[slot.number];
    batch.buffer = &buffer;
    submit_rows(*context_.pool, slot.fetch.size(), batch.filled,
                [this, filling = &slot, staging = buffer.memory->data()](std::size_t row) {
                  const FetchItem& item = filling->fetch[row];
                  stage_row(*context_.dataset, *context_.forms[item.part], item, staging + item.offset,
                            filling->verify, ring_.cached());
                });
  }

  void end(Slot& slot) override {
    Batch& batch = batches_[slot.number];
    const Stopwatch watch;
    batch.filled.get();
    storage_seconds_ += watch.seconds();
    const std::byte* const staging = batch.buffer->memory->data();
    copy_rows(*context_.copy_stream, slot, copies_,
              [&](std::size_t row) { return staging + slot.fetch[row].offset; });
    batch.buffer->copied = slot.copied_event;
  }

  bool wait(const Slot& slot, std::chrono::microseconds time) const override {
    return wait_filled(batches_[slot.number].filled, time);
  }

  TransportUse use() const noexcept override { return {0, ring_.size_bytes(), storage_seconds_}; }

 private:
  // The batch in a slot.
  struct Batch {
    StagingBuffer* buffer = nullptr;
    std::future<void> filled;  // by the pool's threads
  };

  TransportContext context_;
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
