// staged: threads copy (or decompress) the samples of a batch into pinned memory, and one copy takes them to
// the device. Files that the device decodes as they are do not wait for their batch: a thread that has read
// some of them queues their copy; or the device copies them from their archive. Of a data set on a server, a
// device that reads host memory reads samples that are mapped in place, and others where the threads put
// them.
#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/system/stopwatch.hpp"
#include "codec/sample_errors.hpp"
#include "fields/views.hpp"
#include "transport/choose.hpp"
#include "transport/file_chunks.hpp"
#include "transport/registered_files.hpp"
#include "transport/sample_io.hpp"
#include "transport/staging_ring.hpp"
#include "transport/transport.hpp"

namespace shard {

namespace {

constexpr std::size_t kRowsAtOnce = 2;  // that a thread stages

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
        memory_(staging_memory(context.dataset->info(), *context.options, context.cache_bytes)),
        ring_(*context.device, *context.pool, memory_, !context.dataset->is_unconverted()),
        batches_(std::size_t{context.options->prefetch} + 1) {
    if (memory_.chunks.threads != 0) chunks_.emplace(*context.device, *context.copy_stream, memory_.chunks);
    if (registrable_file_bytes(*context.dataset, context.device->info()) != 0) archives_.emplace(context);
  }

  TransportKind kind() const noexcept override { return TransportKind::staged; }

  bool has_room() const override { return ring_.has_room(); }
  // Threads that read files wait for each of them, so they have the next batch at hand. Each batch that was
  // begun and not ended may have a buffer.
  std::size_t depth() const noexcept override {
    return std::min<std::size_t>(context_.dataset->is_unconverted() ? 3 : 2, memory_.plan.buffers);
  }

  void begin(Slot& slot) override {
    release_on_failure(slot, [&] { begin_rows(slot); });
  }

  void end(Slot& slot) override {
    release_on_failure(slot, [&] { end_rows(slot); });
  }

  void check_files(const Slot& slot) const override { RegisteredFiles::check(batches_[slot.number].held); }

  void skip(Slot& slot) override {
    batches_[slot.number].sources.clear();
    batches_[slot.number].held = {};
  }

  bool wait(const Slot& slot, std::chrono::microseconds time) const override {
    return wait_filled(batches_[slot.number].filled, time);
  }

  std::span<const std::byte* const> sources(const Slot& slot) const override {
    if (!to_target_) return {};
    return batches_[slot.number].sources;
  }

  LoaderStats stats() const noexcept override {
    return {.storage_seconds = storage_seconds_,
            .registered_bytes = archives_ ? archives_->bytes() : 0,
            .pinned_bytes = ring_.size_bytes()};
  }

  std::string remark() const override { return archives_ ? archives_->remark() : std::string(); }

 private:
  // Rows of Slot::fetch that are files, from `first` to before `last`: one thread reads them.
  struct Run {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  // The batch in a slot.
  struct Batch {
    StagingBuffer* buffer = nullptr;  // null: samples are staged where the device reads them, or files
    std::vector<const std::byte*>
        sources;                        // where each sample is: in its mapping, or staged. Null: elsewhere
    std::vector<std::uint32_t> staged;  // rows of Slot::fetch
    std::vector<Run> runs;
    std::size_t files = 0;       // in all runs, and in archives
    RegisteredFiles::Rows held;  // in archives
    std::future<void> filled;    // by the pool's threads
  };

  // If `body` fails, the batch no longer keeps archives registered, once what was queued of them is done.
  template <class Body>
  void release_on_failure(const Slot& slot, const Body& body) {
    try {
      body();
    } catch (...) {
      if (archives_) release_failed(batches_[slot.number].held);
      throw;
    }
  }
  void release_failed(RegisteredFiles::Rows& held) {
    Event queued;
    try {
      std::unique_lock<std::mutex> lock;
      if (chunks_) lock = chunks_->flush();
      queued = context_.copy_stream->record();
    } catch (const Error&) {  // the device is lost, and reads nothing any more
    }
    archives_->release(held, queued, context_.copy_stream);
  }

  void begin_rows(Slot& slot) {
    Batch& batch = batches_[slot.number];
    batch.filled = {};
    if (archives_) archives_->begin(slot, batch.held);
    find_files(slot);
    batch.buffer = to_target_ || batch.files == slot.fetch.size() ? nullptr : &ring_.begin();
    find_samples(slot);
    const std::size_t runs = batch.runs.size();
    // It takes the driver 0.7 us a member to queue their copies.
    const std::size_t held = chunks_ && !batch.held.copies.empty() ? 1 : 0;
    if (held + runs + batch.staged.size() == 0) return;
    if (held + runs != 0) {
      const auto lock = chunks_->flush();
      for (const Event& event : slot.released) context_.copy_stream->wait(event);
    }
    submit_rows(
        *context_.pool, held + runs + batch.staged.size(), batch.filled,
        [this, held, runs, filling = &slot, &batch](std::size_t i) {
          if (i < held) return chunks_->copy_registered(batch.held.copies);
          if (i < held + runs) return read_run(*filling, batch.runs[i - held]);
          context_.check_wanted();
          const FetchItem& item = filling->fetch[batch.staged[i - held - runs]];
          stage(*filling, item, place_of(batch, item));
        },
        held + runs != 0 ? 1 : kRowsAtOnce);
  }

  void end_rows(Slot& slot) {
    Batch& batch = batches_[slot.number];
    if (batch.filled.valid()) {
      const Stopwatch watch;
      batch.filled.get();
      storage_seconds_ += watch.seconds();
    }
    std::unique_lock<std::mutex> lock;
    if (chunks_) lock = chunks_->flush();
    if (to_target_) return queue_copies(*context_.copy_stream, slot, {});
    copies_.clear();
    if (!chunks_) std::swap(copies_, batch.held.copies);  // else they are queued
    add_rows(copies_, slot, [&](std::size_t row) { return batch.sources[row]; });
    queue_copies(*context_.copy_stream, slot, copies_);
    if (batch.buffer != nullptr) batch.buffer->copied = slot.copied_event;
    if (archives_) archives_->release(batch.held, slot.copied_event, context_.copy_stream);
  }

  void stage(const Slot& slot, const FetchItem& item, std::byte* target) {
    stage_row(*context_.dataset, *context_.forms[item.part], item, target, slot.verify, ring_.cached());
  }

  // The device copies it from an archive.
  static bool is_held(const Batch& batch, std::size_t row) {
    return row < batch.held.in_place.size() && batch.held.in_place[row] != 0;
  }

  // Runs of about as many bytes, at least one for each thread if they are not small.
  void find_files(const Slot& slot) {
    Batch& batch = batches_[slot.number];
    batch.runs.clear();
    batch.files = static_cast<std::size_t>(
        std::count(batch.held.in_place.begin(), batch.held.in_place.end(), std::uint8_t{1}));
    if (!chunks_) return;
    const std::uint64_t most = memory_.chunks.chunk_bytes;
    const auto is_file = [&](std::size_t row) {
      const FetchItem& item = slot.fetch[row];
      return item.is_file && item.size_bytes <= most && !is_held(batch, row);
    };
    std::uint64_t bytes = 0;
    for (std::size_t row = 0; row < slot.fetch.size(); ++row)
      bytes += is_file(row) ? slot.fetch[row].size_bytes : 0;
    const std::uint64_t enough = std::clamp(bytes / memory_.chunks.threads, most / 4, most);
    std::uint64_t used = 0;
    for (std::uint32_t row = 0; row < slot.fetch.size(); ++row) {
      const FetchItem& item = slot.fetch[row];
      if (!is_file(row)) continue;
      const bool goes_on = !batch.runs.empty() && batch.runs.back().last == row &&
                           used + item.size_bytes <= most && used < enough;
      if (!goes_on) {
        batch.runs.push_back({row, row});
        used = 0;
      }
      batch.runs.back().last = row + 1;
      used += item.size_bytes;
      ++batch.files;
    }
  }

  // On a thread of the pool.
  void read_run(const Slot& slot, const Run& run) {
    context_.check_wanted();
    FileChunk& chunk = chunks_->take();
    std::vector<CopyItem> copies;
    std::byte* at = chunk.memory->data();
    for (std::uint32_t row = run.first; row < run.last; ++row) {
      const FetchItem& item = slot.fetch[row];
      stage(slot, item, at);
      add_copy(copies, {item.target, at, item.size_bytes});
      at += item.size_bytes;
    }
    chunks_->copy(chunk, std::move(copies));
  }

  static std::byte* place_of(const Batch& batch, const FetchItem& item) {
    return batch.buffer == nullptr ? item.target : batch.buffer->memory->data() + item.offset;
  }

  // A device that reads host memory reads samples where they are mapped,
  // if the host need not decode or verify them.
  void find_samples(const Slot& slot) {
    Batch& batch = batches_[slot.number];
    batch.sources.clear();
    batch.staged.clear();
    auto run = batch.runs.begin();
    for (std::uint32_t row = 0; row < slot.fetch.size(); ++row) {
      const FetchItem& item = slot.fetch[row];
      if (run != batch.runs.end() && row == run->last) ++run;
      if (is_held(batch, row) || (run != batch.runs.end() && row >= run->first)) {
        batch.sources.push_back(nullptr);
        continue;
      }
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
  const StagingMemory memory_;
  StagingRing ring_;
  std::optional<FileChunks> chunks_;
  std::optional<RegisteredFiles> archives_;
  std::vector<Batch> batches_;    // by slot
  std::vector<CopyItem> copies_;  // scratch
  double storage_seconds_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_staged(const TransportContext& context) {
  return std::make_unique<Staged>(context);
}

}  // namespace shard
