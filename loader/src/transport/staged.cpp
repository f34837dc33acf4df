// staged: threads copy (or decompress) the samples of a batch into pinned memory, one copy takes them to the
// device.
#include <chrono>
#include <memory>

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
              staging_memory(context.dataset->info(), *context.options, context.cache_bytes)) {}

  TransportKind kind() const noexcept override { return TransportKind::staged; }

  void prepare(Slot&) override {}  // batches take the buffers in turn

  bool has_room() const override { return ring_.has_room(); }

  void begin(Slot& slot) override {
    slot.staged_in = &ring_.begin();
    submit_rows(*context_.pool, slot.fetch.size(), slot.filled,
                [this, filling = &slot, staging = slot.staged_in->memory->data()](std::size_t row) {
                  const FetchItem& item = filling->fetch[row];
                  stage_row(*context_.dataset, *context_.form, item, staging + item.offset, filling->verify,
                            ring_.cached());
                });
  }

  void end(Slot& slot) override {
    const auto begin = std::chrono::steady_clock::now();
    slot.filled.get();
    storage_nanoseconds_ += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
            .count());
    copy_rows(*context_.copy_stream, slot,
              [&](std::size_t row) { return slot.staged_in->memory->data() + slot.fetch[row].offset; });
    slot.staged_in->copied = slot.copied_event;
  }

  bool wait(const Slot& slot, std::chrono::microseconds time) const override {
    return wait_filled(slot, time);
  }

  TransportUse use() const noexcept override { return {0, ring_.size_bytes(), 0, storage_nanoseconds_}; }

 private:
  TransportContext context_;
  StagingRing ring_;
  std::uint64_t storage_nanoseconds_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_staged(const TransportContext& context) {
  return std::make_unique<Staged>(context);
}

}  // namespace shard
