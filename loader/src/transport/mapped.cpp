// mapped: shards registered where they are mapped; the copy engine gathers the samples from the page cache.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "shard/error.hpp"
#include "transport/registered_shards.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

class Mapped final : public Transport {
 public:
  explicit Mapped(const TransportContext& context)
      : context_(context), in_place_(context.device->info().reads_host_memory) {
    const DatasetInfo& info = context.dataset->info();
    if (info.codec.kind != Codec::Kind::none)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("samples stored with codec {} must be decompressed first", to_string(info.codec)));
    if (!context.device->info().registers_read_only)
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} cannot register read-only mappings", context.device->info().name));
    checked_in_batch_.assign(info.shards.size(), 0);
    if (!in_place_) start_registering();
  }

  TransportKind kind() const noexcept override { return TransportKind::mapped; }
  bool reads_in_place() const noexcept override { return in_place_; }
  void prepare(Slot&) override {}

  void begin(Slot& slot) override {
    const std::uint64_t size = context_.dataset->info().spec.size_bytes();
    slot.copies.clear();
    slot.sources.clear();
    ++batch_;
    if (registered_) registered_->begin_batch();
    for (const FetchItem& item : slot.fetch) {
      const ShardReader& shard = context_.dataset->shard(item.at.shard);
      if (checked_in_batch_[item.at.shard] != batch_) {
        checked_in_batch_[item.at.shard] = batch_;
        check_alive(shard);
        if (registered_) registered_->use(item.at.shard);
      }
      const std::span<const std::byte> frame = shard.frame(item.at.sample);
      if (item.target != nullptr)
        slot.copies.push_back({item.target, frame.data(), size});
      else
        slot.sources.push_back(frame.data());
    }
    if (slot.verify) verify(slot);
    Stream& stream = *context_.copy_stream;
    stream.wait(slot.released_event);
    stream.copy(slot.copies);
    slot.copied_event = stream.record();
    if (!registered_) return;
    registered_->end_batch(slot.copied_event);
    if (moving_)
      registered_->ahead(context_.order->shards_from(slot.epoch, slot.index,
                                                     2 * std::size_t{context_.options->order.window_shards}));
  }
  void end(Slot&) override {}  // the copy engine does the rest

  TransportUse use() const noexcept override {
    if (!registered_) return {};
    return {registered_->bytes(), 0, 0, registered_->waited_nanoseconds()};
  }

 private:
  void start_registering() {
    const LoaderOptions& options = *context_.options;
    const std::uint64_t budget =
        options.registered_bytes != 0 ? options.registered_bytes : available_memory_bytes() / 2;
    std::uint64_t total = 0;
    std::uint64_t largest = 0;
    for (const ShardSummary& shard : context_.dataset->info().shards) {
      total += shard.size_bytes;
      largest = std::max(largest, shard.size_bytes);
    }
    if (largest > budget)
      throw Error(
          ErrorCode::resource,
          fmt::format(
              "a shard of {} bytes exceeds the budget of {} bytes for registered memory (registered_bytes)",
              largest, budget));
    if (total > budget && options.order.mode == OrderMode::shuffle)
      throw Error(
          ErrorCode::resource,
          fmt::format("{} bytes of shards exceed the budget of {} bytes for registered memory "
                      "(registered_bytes), and a global shuffle needs all of them at once; a windowed order "
                      "needs only its window",
                      total, budget));
    moving_ = options.order.mode != OrderMode::shuffle;
    registered_.emplace(context_.dataset, context_.device, budget);
    // A platform that refuses says so now, while another transport can be chosen.
    registered_->begin_batch();
    registered_->use(0);
    registered_->end_batch(Event());
  }

  void verify(const Slot& slot) {
    run_rows(*context_.pool, slot.fetch.size(), [&](std::size_t i) {
      const Dataset::Location at = slot.fetch[i].at;
      verify_mapped(context_.dataset->shard(at.shard), at.sample);
    });
  }

  TransportContext context_;
  bool in_place_;
  bool moving_ = false;  // the order comes to shards one after the other
  std::optional<RegisteredShards> registered_;
  std::vector<std::uint64_t> checked_in_batch_;  // by shard: the last batch that used it
  std::uint64_t batch_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_mapped(const TransportContext& context) {
  return std::make_unique<Mapped>(context);
}

}  // namespace shard
