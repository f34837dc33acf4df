// staged: threads copy (or decompress) the samples of a batch into pinned memory, one copy takes them to the
// device.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <vector>

#include "shard/error.hpp"
#include "transport/staging_plan.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

class Staged final : public Transport {
 public:
  explicit Staged(const TransportContext& context)
      : context_(context),
        plan_(staging_plan(batch_bytes(), context.options->prefetch, context.cache_bytes)),
        buffers_(plan_.buffers) {
    const LoaderOptions& options = *context.options;
    const std::uint64_t bytes = batch_bytes() * plan_.buffers;
    if (bytes > options.pinned_bytes)
      throw Error(ErrorCode::resource,
                  fmt::format("staging {} batches of {} samples needs {} bytes of pinned memory; "
                              "pinned_bytes is {}: raise it, or "
                              "lower prefetch or batch_size",
                              plan_.buffers, options.order.batch_size, bytes, options.pinned_bytes));
    for (Buffer& buffer : buffers_) buffer.memory = context_.device->allocate_pinned(batch_bytes());
  }

  TransportKind kind() const noexcept override { return TransportKind::staged; }

  void prepare(Slot&) override {}  // batches take the buffers in turn

  bool has_room() const override {
    try {
      return buffers_[begun_ % buffers_.size()].copied.done();
    } catch (...) {  // the copy failed: begin() says so
      return true;
    }
  }

  void begin(Slot& slot) override {
    adapt_threads();
    Buffer& buffer = buffers_[begun_ % buffers_.size()];
    buffer.copied.wait();  // the copy out of it, of a batch before
    submit_rows(*context_.pool, slot.fetch.size(), slot.filled,
                [this, filling = &slot, staging = buffer.memory->data()](std::size_t row) {
                  const FetchItem& item = filling->fetch[row];
                  stage_row(*context_.dataset, item, staging + item.offset, filling->verify, plan_.cached);
                });
    ++begun_;
  }

  void end(Slot& slot) override {
    Buffer& buffer = buffers_[ended_++ % buffers_.size()];
    const auto begin = std::chrono::steady_clock::now();
    slot.filled.get();
    storage_nanoseconds_ += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
            .count());
    copy_rows(*context_.copy_stream, slot,
              [&](std::size_t row) { return buffer.memory->data() + slot.fetch[row].offset; });
    buffer.copied = slot.copied_event;
  }

  bool wait(const Slot& slot, std::chrono::microseconds time) const override {
    return wait_filled(slot, time);
  }

  TransportUse use() const noexcept override {
    return {0, batch_bytes() * plan_.buffers, 0, storage_nanoseconds_};
  }

 private:
  struct Buffer {
    std::unique_ptr<Block> memory;
    Event copied;  // the device has read it
  };
  std::uint64_t batch_bytes() const {
    return most_bytes_to_device(context_.dataset->info()) * context_.options->order.batch_size;
  }
  // As many threads as keep the link busy and no more: those beyond fill the ring in bursts, which take
  // memory bandwidth from the copy engine (H200: 8 threads 0.90 of the link, the same held to 6 of them
  // 0.96).
  void adapt_threads() {
    if (++batches_ % kAdaptBatches != 0) return;
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds idle = context_.pool->idle();
    const double share =
        std::chrono::duration<double>(idle - idle_) / std::chrono::duration<double>(now - since_);
    since_ = now;
    idle_ = idle;
    if (share > kMostIdle && threads_ > 1)
      --threads_;
    else if (share < kLeastIdle && threads_ < context_.pool->threads())
      ++threads_;
    else
      return;
    context_.pool->use_threads(threads_);
  }

  TransportContext context_;
  static constexpr std::uint64_t kAdaptBatches = 16;
  static constexpr double kMostIdle = 0.08;  // of the time
  static constexpr double kLeastIdle = 0.02;
  std::size_t threads_ = context_.pool->threads();
  std::uint64_t batches_ = 0;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::chrono::nanoseconds idle_{0};
  StagingPlan plan_;
  std::vector<Buffer> buffers_;
  std::size_t begun_ = 0;  // batches; they end in the order in which they began, and take the buffers in turn
  std::size_t ended_ = 0;
  std::uint64_t storage_nanoseconds_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_staged(const TransportContext& context) {
  return std::make_unique<Staged>(context);
}

}  // namespace shard
