// mapped: shards registered where they are mapped; the copy engine gathers the samples from the page cache.
// Samples of shards that are not registered yet, or cannot be, are staged in pinned memory by the pool's
// threads, in the same few buffers as transport staged has; one batched copy takes both.
#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sample_errors.hpp"
#include "shard/error.hpp"
#include "shard/loader/pieces.hpp"
#include "transport/registered_shards.hpp"
#include "transport/sample_io.hpp"
#include "transport/staging_ring.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

class Mapped final : public Transport {
 public:
  explicit Mapped(const TransportContext& context)
      : context_(context), in_place_(context.device->info().reads_host_memory) {
    const DatasetInfo& info = context.dataset->info();
    check_mapped(info, context.device->info(), *context.options, registered_budget_bytes(*context.options));
    in_batch_.resize(info.shards.size());
    if (!in_place_) start_registering();
  }

  TransportKind kind() const noexcept override { return TransportKind::mapped; }
  bool reads_in_place() const noexcept override { return in_place_; }
  void prepare(Slot&) override {}

  // A batch may need no buffer; which one does is not known before.
  bool has_room() const override { return !staging_ || staging_->has_room(); }

  void begin(Slot& slot) override {
    slot.staged_in = nullptr;
    slot.copies.clear();
    slot.sources.clear();
    slot.host_rows.clear();
    slot.filled = {};
    if (registered_) prepare_registered(slot);
    or_release(slot, [&] {
      const bool waited = find_shards(slot);
      find_samples(slot);
      if (slot.host_rows.empty()) return queue(slot);
      submit_rows(*context_.pool, slot.host_rows.size(), slot.filled, [this, filling = &slot](std::size_t i) {
        host_row(filling->fetch[filling->host_rows[i]], filling->verify);
      });
      if (waited)
        finish(slot);  // what it uses may have to make room for the next batch
      else
        verifying_.push_back(&slot);
    });
  }

  void end(Slot& slot) override {
    if (!verifying_.empty() && verifying_.front() == &slot) verifying_.pop_front();
    if (slot.filled.valid()) or_release(slot, [&] { finish(slot); });
  }

  // Everything may be on the device by now, so that no batch comes here any more.
  void skip(Slot&) override {
    if (registered_) give_back_staging();
  }

  bool wait(const Slot& slot, std::chrono::microseconds time) const override {
    return wait_filled(slot, time);
  }

  TransportUse use() const noexcept override {
    if (!registered_) return {0, 0, 0, storage_nanoseconds_};
    return {registered_->bytes(), staging_ ? staging_->size_bytes() : 0, 0,
            storage_nanoseconds_ + registered_->waited_nanoseconds()};
  }

  std::string remark() const override {
    if (!registered_) return {};
    std::string remark = registered_->remark();
    const std::lock_guard lock(mutex_);
    if (!no_staging_.empty()) remark += (remark.empty() ? "" : "; ") + no_staging_;
    return remark;
  }

 private:
  struct ShardInBatch {
    std::uint64_t batch = 0;  // the last one that touched it
    bool in_place = false;    // in that one
  };

  // No more shards stay registered for the slot when its batch fails.
  template <class Body>
  void or_release(Slot& slot, const Body& body) {
    try {
      body();
    } catch (...) {
      release(slot, Event());
      throw;
    }
  }
  void release(Slot& slot, const Event& done) {
    if (registered_) registered_->release(slot.used_shards, done);
    slot.used_shards.clear();
  }

  // Once all shards are registered, and the copies out of it are done.
  void give_back_staging() {
    if (!staging_ || !verifying_.empty() || !registered_->holds_all() || !staging_->may_end()) return;
    staging_.reset();
    context_.pool->use_threads(context_.pool->threads());
  }

  void prepare_registered(Slot& slot) {
    give_back_staging();
    if (batch_ == 0) epoch_ = slot.epoch;
    if (batch_ == 0) return;  // the very first batch comes before any registration
    if (std::exchange(epoch_, slot.epoch) != slot.epoch) registered_->retry_refused();
    const OrderOptions& order = context_.options->order;
    const std::size_t shards = context_.dataset->info().shards.size();
    if (order.mode != OrderMode::shuffle) {
      registered_->ahead(
          context_.order->shards_from(slot.epoch, slot.index, 2 * std::size_t{order.window_shards}));
    } else if (order.partition == Partition::by_shard) {
      registered_->ahead(context_.order->shards_from(slot.epoch, slot.index, shards));
    } else if (batch_ == 1) {
      std::vector<std::uint32_t> all(shards);
      std::iota(all.begin(), all.end(), 0U);
      registered_->ahead(std::move(all));
    }
  }

  // Which shards of the batch are read in place. True: it waited until all of them were.
  bool find_shards(Slot& slot) {
    ++batch_;
    bool all = true;
    for (const FetchItem& item : slot.fetch) {
      ShardInBatch& shard = in_batch_[item.at.shard];
      if (shard.batch == batch_) continue;
      shard.batch = batch_;
      shard.in_place = !registered_ || registered_->try_use(item.at.shard);
      if (!shard.in_place)
        all = false;
      else
        begin_in_place(slot, item.at.shard);
    }
    if (all) return false;
    if (staging_) {
      slot.staged_in = &staging_->begin();
      return false;
    }
    finish_earlier();
    for (const FetchItem& item : slot.fetch) {
      ShardInBatch& shard = in_batch_[item.at.shard];
      if (shard.in_place) continue;
      registered_->use(item.at.shard, context_.stopping);
      shard.in_place = true;
      begin_in_place(slot, item.at.shard);
    }
    return true;
  }
  // Batches that are begun and not ended hold shards while the pool verifies their samples. Where this one
  // has to wait for shards, the budget is its own: what fails of the others is said when they end.
  void finish_earlier() {
    for (Slot* slot : verifying_) {
      try {
        finish(*slot);
      } catch (...) {
        release(*slot, Event());
        std::promise<void> failed;
        failed.set_exception(std::current_exception());
        slot->filled = failed.get_future();
      }
    }
    verifying_.clear();
  }
  void begin_in_place(Slot& slot, std::uint32_t shard) {
    if (registered_) slot.used_shards.push_back(shard);
    check_alive(context_.dataset->shard(shard));
  }

  void stage_no_more(const std::string& why) {
    const std::lock_guard lock(mutex_);
    no_staging_ =
        "batches wait until their shards are registered, because there is no staging memory: " + why;
  }

  // Where each sample is read, and what the host has to do before.
  void find_samples(Slot& slot) {
    const std::uint64_t piece = context_.device->info().registration_piece_bytes;
    for (std::uint32_t row = 0; row < slot.fetch.size(); ++row) {
      FetchItem& item = slot.fetch[row];
      const std::span<const std::byte> frame = mapped_bytes(*context_.dataset, item);
      const bool in_place = in_batch_[item.at.shard].in_place;
      item.staging = in_place ? nullptr : slot.staged_in->memory->data() + item.offset;
      if (item.target == nullptr)
        slot.sources.push_back(frame.data());
      else if (in_place)
        add_pieces({item.target, frame.data(), frame.size()},
                   static_cast<std::uint64_t>(frame.data() - images_begin(item.at.shard)), piece,
                   slot.copies);
      else
        slot.copies.push_back({item.target, item.staging, frame.size()});
      if (slot.verify || !in_place) slot.host_rows.push_back(row);
    }
  }

  const std::byte* images_begin(std::uint32_t index) const {
    const ShardReader& shard = context_.dataset->shard(index);
    return shard.mapping().data() + shard.header().images_begin;
  }

  void host_row(const FetchItem& item, bool verify) const {
    if (item.staging != nullptr)
      stage_row(*context_.dataset, *context_.form, item, item.staging, verify, cached_);
    else
      verify_mapped(*context_.form, context_.dataset->shard(item.at.shard), item.at.sample);
  }

  void finish(Slot& slot) {
    const auto begin = std::chrono::steady_clock::now();
    slot.filled.wait();
    storage_nanoseconds_ += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
            .count());
    slot.filled.get();
    queue(slot);
  }
  void queue(Slot& slot) {
    queue_copies(*context_.copy_stream, slot);
    if (slot.staged_in != nullptr) slot.staged_in->copied = slot.copied_event;
    release(slot, slot.copied_event);
  }

  void start_registering() {
    // By default what the machine grants, which changes while the loader runs.
    registered_.emplace(context_.dataset, context_.device,
                        [options = *context_.options] { return registered_budget_bytes(options); });
    make_staging();
  }

  // All of it at once: allocating pinned memory beside running batches takes the device's lock from them.
  void make_staging() {
    try {
      const StagingMemory memory =
          staging_memory(context_.dataset->info(), *context_.options, context_.cache_bytes);
      staging_.emplace(*context_.device, *context_.pool, memory);
      cached_ = memory.plan.cached;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::resource) throw;
      stage_no_more(error.what());
    }
  }

  TransportContext context_;
  bool in_place_;
  std::optional<RegisteredShards> registered_;  // where the device does not read host memory
  std::vector<ShardInBatch> in_batch_;          // by shard
  std::deque<Slot*> verifying_;                 // begun and not ended: the pool stages or verifies samples
  std::uint64_t batch_ = 0;
  std::uint64_t epoch_ = 0;  // of the last batch
  std::optional<StagingRing>
      staging_;          // until all shards are registered; none where there is no memory for it
  bool cached_ = false;  // it is filled by stores that stay in the cache
  std::uint64_t storage_nanoseconds_ = 0;
  mutable std::mutex mutex_;
  std::string no_staging_;  // guarded by mutex_
};

}  // namespace

std::unique_ptr<Transport> make_mapped(const TransportContext& context) {
  return std::make_unique<Mapped>(context);
}

}  // namespace shard
