#include "engine/batch_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/system/guarded_read.hpp"
#include "base/system/stopwatch.hpp"
#include "codec/sample_errors.hpp"
#include "engine/prepare_slot.hpp"
#include "shard/error.hpp"
#include "slot/profiler_range.hpp"
#include "transport/memory_plan.hpp"

namespace shard {

namespace {

constexpr std::chrono::milliseconds kSlotTurn{20};  // between looks at whether to stop

std::vector<std::unique_ptr<Stream>> make_copy_streams(Device& device) {
  std::vector<std::unique_ptr<Stream>> streams;
  const bool by_kernels = device.info().kind == DeviceKind::cuda && !device.info().batched_copy;
  for (int i = 0; i < (by_kernels ? 2 : 1); ++i) streams.push_back(device.create_stream());
  return streams;
}

}  // namespace

BatchMaker::BatchMaker(const LoaderSetup& setup, Ring& ring, const Mailbox& mailbox)
    : setup_(setup),
      mailbox_(mailbox),
      placement_(setup, ring.slots().size()),
      heads_(setup.dataset),
      copy_streams_(make_copy_streams(*setup.device)),
      pool_(setup.options.threads) {
  TransportContext context{&setup.dataset, setup.forms,  setup.device,
                           &setup.options, &setup.order, copy_streams_.front().get(),
                           &pool_};
  context.other_copy_stream = copy_streams_.back().get();
  context.stopping = [this] { return mailbox_.stopping(); };
  transport_ = make_transport(context, reason_);
  const ComputeMemory memory = compute_memory(setup.dataset.info(), setup.device->info(), setup.options);
  const LateMemory late =
      late_memory(setup.dataset.info(), setup.device->info(), setup.options, transport_->kind());
  queue_ = std::make_unique<ComputeQueue>(setup, memory, late, pool_);
  stats_.device_bytes += memory.size_bytes() + late.size_bytes();
  stats_.pinned_bytes += late.size_bytes();
  prepare_slots(ring);
  if (setup.dataset.is_remote() &&
      (!setup.options.remote.cache.empty() || setup.options.remote.transit_bytes > 0))
    fetcher_.emplace(setup);
  if (setup.dataset.is_unconverted())
    images_.emplace(setup, [this](std::uint64_t sample) { return !placement_.is_resident(sample); });
  if (setup.options.transport == TransportKind::resident) make_resident();
}

std::string BatchMaker::reason() const {
  const std::string remark = transport_->remark();
  return remark.empty() ? reason_ : reason_ + "; " + remark;
}

void BatchMaker::prepare_slots(Ring& ring) {
  const SlotMemory memory =
      slot_memory(setup_.dataset.info(), setup_.device->info(), setup_.options, transport_->kind());
  for (Slot& slot : ring.slots()) {
    prepare_slot(slot, setup_, memory);
    placement_.prepare(slot, memory);
    transport_->prepare(slot);
    stats_.device_bytes += memory.images_bytes + memory.raw_bytes + memory.columns_bytes;
    stats_.pinned_bytes += memory.columns_bytes + memory.verdict_bytes;
  }
}

void BatchMaker::make_resident() {
  const DatasetInfo& info = setup_.dataset.info();
  const std::uint64_t samples = setup_.order.samples_of_rank();
  const std::uint64_t free =
      setup_.options.memory.resident_bytes != 0 ? 0 : setup_.device->free_memory_bytes();
  const ResidentMemory memory = resident_memory(info, setup_.options, samples, free);
  placement_.keep_resident(memory);
  stats_.device_bytes += memory.capacity_bytes;
  const std::string part =
      setup_.form->fixed_size() && setup_.forms.size() == 1
          ? fmt::format("{} of {} samples", memory.capacity_bytes / setup_.form->most_bytes_to_device(),
                        samples)
          : fmt::format("{} of {} bytes of shards", memory.capacity_bytes, memory.all_bytes);
  reason_ = fmt::format("asked for; {} fit; the others come {}", part, to_string(transport_->kind()));
}

void BatchMaker::begin(Slot& slot, std::uint64_t epoch, std::uint64_t index, std::size_t batches,
                       bool verify) {
  slot.epoch = epoch;
  slot.index = index;
  slot.batches = batches;
  slot.verify = verify;
  slot.again = false;
  begin(slot);
}

bool BatchMaker::needs_a_look(const Slot& slot) const { return images_ && placement_.has_files(slot); }

bool BatchMaker::refuse_files(const Slot& slot) {
  const std::vector<std::uint64_t> refused = placement_.take_refused_files(slot);
  images_->refuse_files(refused);
  if (refused.empty()) transport_->check_files(slot);
  return !refused.empty();
}

void BatchMaker::make_again(Slot& slot) {
  begin_again(slot);
  end(slot);
}

void BatchMaker::begin_again(Slot& slot) {
  slot.again = true;
  begin(slot);
}

void BatchMaker::begin(Slot& slot) {
  const ProfilerRange range(*setup_.device, "shard: begin batch");
  slot.error = nullptr;
  slot.fetch.clear();
  wait_for_last_use(slot);
  placement_.choose(slot, pool_);
  wait_for_shards(slot);
  wait_for_images(slot);
  placement_.place(slot, pool_);
  if (slot.verify) heads_.verify(slot, pool_);
  if (slot.fetch.empty())
    transport_->skip(slot);
  else
    transport_->begin(slot);
}

// Waits until the device has made the slot's last batch: until then it reads the slot's host memory.
void BatchMaker::wait_for_last_use(const Slot& slot) {
  const Stopwatch watch;
  try {
    slot.ready_event.wait();
  } catch (const UnreadablePage&) {
    // It belongs to the slot's last batch, and whoever waited for that batch got this error.
  } catch (const Error&) {
    rethrow_named(setup_.dataset);
  }
  stats_.link_seconds += watch.seconds();
}

void BatchMaker::wait_for_shards(const Slot& slot) {
  if (!fetcher_) return;
  const Stopwatch watch;
  std::vector<std::uint32_t> shards;
  for (const Dataset::Location at : slot.locations) shards.push_back(at.shard);
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  fetcher_->before_batch(slot.epoch, slot.index, shards, [this] { return mailbox_.stopping(); });
  stats_.fetch_seconds += watch.seconds();
}

void BatchMaker::wait_for_images(Slot& slot) {
  if (!images_) return;
  ImagesAhead::Samples samples =
      images_->before_batch(slot.epoch, slot.index, slot.again, [this] { return mailbox_.stopping(); });
  for (const auto& [row, sample] : samples.replaced) placement_.replace(slot, row, sample);
  if (slot.verdict && !samples.replaced.empty()) slot.verdict->restart_batch(slot.locations);
  placement_.set_files(slot, std::move(samples.is_file));
}

LoaderStats BatchMaker::arrivals() const {
  LoaderStats stats = fetcher_ ? fetcher_->stats() : LoaderStats();
  if (images_) stats += images_->stats();
  return stats;
}

bool BatchMaker::ready(std::uint64_t epoch, std::uint64_t index) {
  return !fetcher_ || fetcher_->ready(epoch, index);
}

void BatchMaker::abandon(const Slot& slot) noexcept {
  placement_.forget(slot);
  if (images_) images_->after_batch(slot.epoch, slot.index);
  if (!fetcher_) return;
  try {  // what was queued for it may read shards where they are mapped
    queue_->wait();
  } catch (const std::exception&) {  // an error of its reads
  }
  fetcher_->abandon_batch(slot.epoch, slot.index);
}

// Of images that are not converted, some are pixels.
std::uint64_t BatchMaker::frames_of(const Slot& slot, const PlacedBatch& batch, std::size_t part) const {
  const std::size_t rows = slot.locations.size();
  if (!images_) return rows;
  if (batch.files.empty()) return 0;
  const auto first = batch.files.begin() + static_cast<std::ptrdiff_t>(part * rows);
  return static_cast<std::uint64_t>(std::count_if(first, first + static_cast<std::ptrdiff_t>(rows),
                                                  [](const auto& file) { return file.bytes != 0; }));
}

void BatchMaker::end(Slot& slot) {
  const ProfilerRange range(*setup_.device, "shard: end batch");
  if (!slot.fetch.empty()) {
    transport_->end(slot);
    // Reads of the host device may fail, and samples that later batches use must have been read.
    if (placement_.keeps_resident() && setup_.device->info().kind == DeviceKind::host) wait_copied(slot);
  } else {
    slot.copied_event = Event();
  }
  wait_released(slot);
  placement_.finish(slot);
  const PlacedBatch& batch = placement_.batch(slot);
  queue_->add(slot, batch, transport_->sources(slot));
  stats_.bytes += std::accumulate(batch.sizes.begin(), batch.sizes.end(), std::uint64_t{0});
  for (std::size_t part = 0; part < setup_.forms.size(); ++part) {
    const auto& form = setup_.forms[part];
    if (form->decoded_by_device()) stats_.decoded_by_device += frames_of(slot, batch, part);
    if (form->decoded_by_host()) stats_.decoded_by_host += slot.locations.size();
  }
  if (images_) images_->after_batch(slot.epoch, slot.index);
  if (!fetcher_) return;
  // A device that reads host memory may still read samples where they are mapped.
  fetcher_->after_batch(slot.epoch, slot.index,
                        setup_.device->info().reads_host_memory ? slot.ready_event : Event());
}

// Waits for the copies into the slot. They may be queued after the consumer's work on its last batch, which
// may never end.
void BatchMaker::wait_copied(const Slot& slot) {
  try {
    while (!slot.copied_event.wait_for(kSlotTurn))
      if (mailbox_.stopping()) throw Error(ErrorCode::cancelled, "stopped while samples are copied");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    rethrow_named(setup_.dataset);
  }
}

// Columns and indices are written by the host, and the consumer may read them on the host or by its own
// copies and kernels. So its work on the slot's last batch must have ended; to order the device's work after
// it is not enough.
void BatchMaker::wait_released(Slot& slot) {
  const Stopwatch watch;
  for (const Event& event : slot.released) {
    try {
      while (!event.wait_for(kSlotTurn))
        if (mailbox_.stopping()) {
          // They are being copied, also those that stay on the device; but no file has its index yet.
          std::erase_if(slot.fetch, [](const FetchItem& item) { return !item.is_file; });
          throw Error(ErrorCode::cancelled, "stopped while a consumer still reads the slot");
        }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;  // else the consumer's work failed, so it has ended
    }
  }
  stats_.consumer_seconds += watch.seconds();
}

}  // namespace shard
