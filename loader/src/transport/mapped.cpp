// mapped: shards are registered where they are mapped, and the copy engine gathers the samples from the page
// cache. The pool's threads stage the samples of shards that are not registered, in buffers like those of
// transport staged. One batched copy takes both to the device.
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

#include "base/system/stopwatch.hpp"
#include "codec/sample_errors.hpp"
#include "codec/verify_sample.hpp"
#include "shard/error.hpp"
#include "shard/loader/pieces.hpp"
#include "transport/registered_shards.hpp"
#include "transport/sample_io.hpp"
#include "transport/staging_ring.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

// For each shard of a batch it is checked once whether its file is still complete. The feeder's thread checks
// up to this many shards itself (2 us each, H200). For more shards,
// the pool's threads do it while the batch before is copied.
constexpr std::size_t kShardsCheckedHere = 64;

class Mapped final : public Transport {
 public:
  explicit Mapped(const TransportContext& context)
      : context_(context),
        in_place_(context.device->info().reads_host_memory),
        batches_(std::size_t{context.options->prefetch} + 1) {
    const DatasetInfo& info = context.dataset->info();
    check_mapped(info, context.device->info(), *context.options, registered_budget_bytes(*context.options));
    in_batch_.resize(info.shards.size());
    if (!in_place_) start_registering();
  }

  TransportKind kind() const noexcept override { return TransportKind::mapped; }

  // A batch may need no buffer, but that is not known before begin().
  bool has_room() const override { return !staging_ || staging_->has_room(); }

  void begin(Slot& slot) override {
    Batch& batch = batches_[slot.number];
    batch.buffer = nullptr;
    batch.copies.clear();
    batch.sources.clear();
    batch.host_rows.clear();
    batch.filled = {};
    if (registered_) prepare_registered(slot);
    release_on_failure(batch, [&] {
      const bool waited = find_shards(slot);
      find_samples(slot);
      if (batch.host_rows.empty()) return queue(slot);
      submit_rows(*context_.pool, batch.host_rows.size(), batch.filled,
                  [this, filling = &slot, rows = batch.host_rows.data()](std::size_t i) {
                    host_row(filling->fetch[rows[i].row], rows[i].staging, filling->verify);
                  });
      if (waited)
        finish(slot);  // the next batch may need the room of the shards that it uses
      else
        verifying_.push_back(&slot);
    });
  }

  void end(Slot& slot) override {
    Batch& batch = batches_[slot.number];
    if (!verifying_.empty() && verifying_.front() == &slot) verifying_.pop_front();
    if (batch.filled.valid()) release_on_failure(batch, [&] { finish(slot); });
  }

  // If all samples are on the device, this is called instead of begin() from then on.
  void skip(Slot& slot) override {
    batches_[slot.number].sources.clear();
    if (registered_) give_back_staging();
  }

  bool wait(const Slot& slot, std::chrono::microseconds time) const override {
    return wait_filled(batches_[slot.number].filled, time);
  }

  std::span<const std::byte* const> sources(const Slot& slot) const override {
    return batches_[slot.number].sources;
  }

  LoaderStats stats() const noexcept override {
    LoaderStats stats{.storage_seconds = storage_seconds_};
    if (!registered_) return stats;
    stats.storage_seconds += registered_->waited_seconds();
    stats.registered_bytes = registered_->bytes();
    stats.pinned_bytes = staging_ ? staging_->size_bytes() : 0;
    return stats;
  }

  std::string remark() const override {
    if (!registered_) return {};
    std::string remark = registered_->remark();
    const std::lock_guard lock(mutex_);
    if (!no_staging_.empty()) remark += (remark.empty() ? "" : "; ") + no_staging_;
    return remark;
  }

 private:
  // A row that the pool's threads stage, verify, or check the shard of.
  struct HostRow {
    std::uint32_t row = 0;         // in Slot::fetch
    std::byte* staging = nullptr;  // null: it is read in place
  };
  // The batch in a slot.
  struct Batch {
    StagingBuffer* buffer = nullptr;  // that it took; null: none
    std::vector<CopyItem> copies;
    std::vector<const std::byte*> sources;  // where the device reads samples in place
    std::vector<HostRow> host_rows;
    std::vector<std::uint32_t> in_place;  // the shards of these; registered ones stay so until its copies are
                                          // queued
    std::future<void> filled;             // the pool's threads are done with host_rows
  };
  struct ShardInBatch {
    std::uint64_t batch = 0;  // the last one that touched it
    bool in_place = false;    // in that one
  };

  // Calls `body`. If it fails, the batch no longer keeps shards registered.
  template <class Body>
  void release_on_failure(Batch& batch, const Body& body) {
    try {
      body();
    } catch (...) {
      release(batch, Event());
      throw;
    }
  }
  void release(Batch& batch, const Event& done, const Stream* stream = nullptr) {
    if (registered_) registered_->release(batch.in_place, done, stream);
    batch.in_place.clear();
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
    if (batch_ == 0) return;  // no registration may delay the very first batch
    if (std::exchange(epoch_, slot.epoch) != slot.epoch) registered_->retry_refused();
    const OrderOptions& options = *context_.options;
    const std::size_t shards = context_.dataset->info().shards.size();
    if (options.order != OrderMode::shuffle) {
      registered_->prefetch(
          context_.order->shards_from(slot.epoch, slot.index, 2 * std::size_t{options.window_shards}),
          staging_ ? NoRoom::read_in : NoRoom::evict);
    } else if (options.partition == Partition::by_shard) {
      registered_->prefetch(context_.order->shards_from(slot.epoch, slot.index, shards));
    } else if (batch_ == 1) {
      std::vector<std::uint32_t> all(shards);
      std::iota(all.begin(), all.end(), 0U);
      registered_->prefetch(std::move(all));
    }
  }

  // Finds which shards of the batch are read in place. True: it waited until all of them were registered.
  bool find_shards(Slot& slot) {
    Batch& batch = batches_[slot.number];
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
        batch.in_place.push_back(item.at.shard);
    }
    if (all) return false;
    if (staging_) {
      batch.buffer = &staging_->begin();
      return false;
    }
    finish_earlier();
    for (const FetchItem& item : slot.fetch) {
      ShardInBatch& shard = in_batch_[item.at.shard];
      if (shard.in_place) continue;
      registered_->use(item.at.shard, context_.stopping);
      shard.in_place = true;
      batch.in_place.push_back(item.at.shard);
    }
    return true;
  }
  // Batches that are begun and not ended use shards while the pool verifies their samples. If this batch has
  // to wait for shards, it needs the whole budget, so the others are finished first. end() throws what fails
  // in them.
  void finish_earlier() {
    for (Slot* slot : verifying_) {
      Batch& batch = batches_[slot->number];
      try {
        finish(*slot);
      } catch (...) {
        release(batch, Event());
        std::promise<void> failed;
        failed.set_exception(std::current_exception());
        batch.filled = failed.get_future();
      }
    }
    verifying_.clear();
  }

  void stage_no_more(const std::string& why) {
    const std::lock_guard lock(mutex_);
    no_staging_ =
        "batches wait until their shards are registered, because there is no staging memory: " + why;
  }

  // Decides where each sample is read, and what the host must do before.
  void find_samples(const Slot& slot) {
    Batch& batch = batches_[slot.number];
    const std::uint64_t piece = context_.device->info().registration_piece_bytes;
    const bool check_on_pool = batch.in_place.size() > kShardsCheckedHere;
    if (!check_on_pool)
      for (const std::uint32_t shard : batch.in_place) check_alive(context_.dataset->shard(shard));
    for (std::uint32_t row = 0; row < slot.fetch.size(); ++row) {
      const FetchItem& item = slot.fetch[row];
      const std::span<const std::byte> bytes =
          mapped_bytes(*context_.dataset, *context_.forms[item.part], item);
      const bool in_place = in_batch_[item.at.shard].in_place;
      std::byte* const staging = in_place ? nullptr : batch.buffer->memory->data() + item.offset;
      if (item.target == nullptr)
        batch.sources.push_back(bytes.data());
      else if (in_place)
        add_pieces({item.target, bytes.data(), bytes.size()},
                   static_cast<std::uint64_t>(bytes.data() - registered_begin(item.at.shard)), piece,
                   batch.copies);
      else
        batch.copies.push_back({item.target, staging, bytes.size()});
      if (slot.verify || !in_place || (check_on_pool && item.first_of_shard))
        batch.host_rows.push_back({row, staging});
    }
  }

  const std::byte* registered_begin(std::uint32_t index) const {
    return registered_range(context_.dataset->shard(index), context_.forms.size() > 1).data();
  }

  void host_row(const FetchItem& item, std::byte* staging, bool verify) const {
    context_.check_wanted();
    if (staging != nullptr)
      return stage_row(*context_.dataset, *context_.forms[item.part], item, staging, verify, cached_);
    const ShardReader& shard = context_.dataset->shard(item.at.shard);
    if (item.first_of_shard) check_alive(shard);
    if (verify) verify_mapped(*context_.forms[item.part], shard, item.at.sample);
  }

  void finish(Slot& slot) {
    Batch& batch = batches_[slot.number];
    const Stopwatch watch;
    batch.filled.wait();
    storage_seconds_ += watch.seconds();
    batch.filled.get();
    queue(slot);
  }
  void queue(Slot& slot) {
    Batch& batch = batches_[slot.number];
    const Stream* const stream = context_.copy_stream;
    queue_copies(*context_.copy_stream, slot, batch.copies);
    if (context_.other_copy_stream != nullptr) std::swap(context_.copy_stream, context_.other_copy_stream);
    if (batch.buffer != nullptr) batch.buffer->copied = slot.copied_event;
    release(batch, slot.copied_event, stream);
  }

  void start_registering() {
    // The default budget is what the machine allows, which changes while the loader runs.
    registered_.emplace(
        *context_.dataset, context_.device,
        [options = *context_.options] { return registered_budget_bytes(options); },
        context_.forms.size() > 1);
    make_staging();
  }

  // Allocates all buffers at once: allocating pinned memory while batches run would block them in CUDA.
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
  bool in_place_;                               // the device reads host memory
  std::optional<RegisteredShards> registered_;  // where the device does not read host memory
  std::vector<ShardInBatch> in_batch_;          // by shard
  std::vector<Batch> batches_;                  // by slot
  std::deque<Slot*> verifying_;                 // begun and not ended: the pool stages or verifies samples
  std::uint64_t batch_ = 0;
  std::uint64_t epoch_ = 0;  // of the last batch
  std::optional<StagingRing>
      staging_;          // until all shards are registered; none where there is no memory for it
  bool cached_ = false;  // it is filled by stores that stay in the cache
  double storage_seconds_ = 0;
  mutable std::mutex mutex_;
  std::string no_staging_;  // guarded by mutex_
};

}  // namespace

std::unique_ptr<Transport> make_mapped(const TransportContext& context) {
  return std::make_unique<Mapped>(context);
}

}  // namespace shard
