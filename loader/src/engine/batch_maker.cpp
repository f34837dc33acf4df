#include "engine/batch_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/bytes.hpp"
#include "base/system/guarded_read.hpp"
#include "base/system/stopwatch.hpp"
#include "codec/sample_errors.hpp"
#include "fields/views.hpp"
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
      work_(ring.slots().size()),
      pool_(std::make_unique<ThreadPool>(setup.options.threads)),
      copy_streams_(make_copy_streams(*setup.device)),
      transforms_(setup.transforms),
      last_placed_(setup.dataset.info().shards.size()),
      columns_(setup.dataset, setup.options) {
  TransportContext context{&setup.dataset, setup.forms,  setup.device,
                           &setup.options, &setup.order, copy_streams_.front().get(),
                           pool_.get()};
  context.other_copy_stream = copy_streams_.back().get();
  context.stopping = [this] { return mailbox_.stopping(); };
  transport_ = make_transport(context, reason_);
  prepare_lanes();
  prepare_slots(ring);
  if (setup.dataset.is_remote() &&
      (!setup.options.remote.cache.empty() || setup.options.remote.transit_bytes > 0))
    filler_.emplace(setup);
  if (setup.options.transport == TransportKind::resident) make_resident();
}

std::string BatchMaker::reason() const {
  const std::string remark = transport_->remark();
  return remark.empty() ? reason_ : reason_ + "; " + remark;
}

void BatchMaker::prepare_lanes() {
  Device& device = *setup_.device;
  const ComputeMemory memory = compute_memory(setup_.dataset.info(), device.info(), setup_.options);
  const auto allocate = [&](std::uint64_t bytes) {
    return bytes > 0 ? device.allocate_device(bytes) : nullptr;
  };
  for (std::uint64_t i = 0; i < memory.lanes; ++i)
    lanes_.push_back({allocate(memory.decoded_bytes), allocate(memory.augment_bytes),
                      std::make_unique<FieldMaker>(setup_), device.create_stream()});
  stats_.device_bytes += memory.size_bytes();
}

void BatchMaker::prepare_slots(Ring& ring) {
  Device& device = *setup_.device;
  const DatasetInfo& info = setup_.dataset.info();
  const SlotMemory memory = slot_memory(info, device.info(), setup_.options, transport_->kind());
  for (Slot& slot : ring.slots()) {
    slot.images = device.allocate_device(memory.images_bytes);
    slot.images_offsets = memory.images_offsets;
    if (memory.raw_bytes > 0) work_[slot.number].raw = device.allocate_device(memory.raw_bytes);
    if (memory.verdict_bytes > 0)
      slot.verdict =
          std::make_unique<Verdict>(setup_.dataset, setup_.forms, device, setup_.options.batch_size);
    lanes_.front().fields->prepare(slot, memory.fields_offsets);
    prepare_columns(slot, memory);
    stats_.device_bytes += memory.images_bytes + memory.raw_bytes + memory.columns_bytes;
    stats_.pinned_bytes += memory.columns_bytes + memory.verdict_bytes;
    transport_->prepare(slot);
  }
}

void BatchMaker::prepare_columns(Slot& slot, const SlotMemory& memory) {
  slot.columns_host = setup_.device->allocate_pinned(memory.columns_bytes);
  slot.columns_device = setup_.device->allocate_device(memory.columns_bytes);
  slot.columns_copy = {slot.columns_device->data(), slot.columns_host->data(), memory.columns_bytes};
  auto offset = memory.columns_offsets.begin();
  const auto place = [&](const std::string& name, DType dtype) {
    const std::uint64_t at = *offset++;
    return SlotColumn{name,
                      0,
                      dtype,
                      {setup_.options.batch_size},
                      slot.columns_host->data() + at,
                      slot.columns_device->data() + at};
  };
  for (const DeliveredColumn& column : delivered_columns(setup_.dataset.info(), setup_.options)) {
    SlotColumn view = place(column.name, column.dtype);
    view.view = column.view;
    view.shape.insert(view.shape.end(), column.shape.begin(), column.shape.end());
    slot.columns.push_back(std::move(view));
  }
  slot.ids = place("ids", DType::i64);
  slot.mask = place("mask", DType::boolean);
}

void BatchMaker::make_resident() {
  const DatasetInfo& info = setup_.dataset.info();
  const std::uint64_t samples = setup_.order.samples_of_rank();
  const std::uint64_t free =
      setup_.options.memory.resident_bytes != 0 ? 0 : setup_.device->free_memory_bytes();
  const ResidentMemory memory = resident_memory(info, setup_.options, samples, free);
  resident_.emplace(*setup_.device, memory.capacity_bytes, memory.alignment);
  stats_.device_bytes += memory.capacity_bytes;
  const std::string part =
      setup_.form->fixed_size() && setup_.forms.size() == 1
          ? fmt::format("{} of {} samples", memory.capacity_bytes / setup_.form->most_bytes_to_device(),
                        samples)
          : fmt::format("{} of {} bytes of shards", memory.capacity_bytes, memory.all_bytes);
  reason_ = fmt::format("asked for; {} fit; the others come {}", part, to_string(transport_->kind()));
}

void BatchMaker::begin(Slot& slot, std::uint64_t epoch, std::uint64_t index, bool verify) {
  const ProfilerRange range(*setup_.device, "shard: begin batch");
  slot.error = nullptr;
  slot.fetch.clear();
  slot.epoch = epoch;
  slot.index = index;
  slot.verify = verify;
  wait_for_last_use(slot);
  Work& work = work_[slot.number];
  work.draws.finish();  // of a batch that failed
  setup_.order.batch(epoch, index, work.indices);
  slot.locations.clear();
  for (const std::uint64_t sample : work.indices.samples)
    slot.locations.push_back(setup_.dataset.locate(sample));
  if (slot.verdict) slot.verdict->start_batch(slot.locations);
  if (!setup_.identity || setup_.targets) work.draws.start(setup_, epoch, work.indices.draws, *pool_);
  draw_pairs(slot);
  wait_for_shards(slot);
  open_shards(slot);
  place_samples(slot);
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

void BatchMaker::draw_pairs(Slot& slot) {
  const LoaderOptions& options = setup_.options;
  if (!options.mix.enabled()) return;
  // Counted over all ranks, whose rows are neighbours in the global batch.
  const std::uint64_t first = (slot.index * options.world_size + options.rank) * options.batch_size / 2;
  slot.pairs.clear();
  for (std::uint64_t i = 0; i < work_[slot.number].indices.samples.size() / 2; ++i)
    slot.pairs.push_back(
        draw_mix(setup_.transforms[0].delivered, options.mix, options.seed, slot.epoch, first + i));
}

void BatchMaker::wait_for_shards(const Slot& slot) {
  if (!filler_) return;
  const Stopwatch watch;
  std::vector<std::uint32_t> shards;
  for (const Dataset::Location at : slot.locations) shards.push_back(at.shard);
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  filler_->before_batch(slot.epoch, slot.index, shards, [this] { return mailbox_.stopping(); });
  stats_.fetch_seconds += watch.seconds();
}

bool BatchMaker::ready(std::uint64_t epoch, std::uint64_t index) {
  return !filler_ || filler_->ready(epoch, index);
}

// Opens the batch's shards that were not opened yet, on several threads: a first shuffled batch touches
// hundreds.
void BatchMaker::open_shards(const Slot& slot) {
  std::vector<std::uint32_t> fresh;
  for (const Dataset::Location at : slot.locations)
    if (setup_.dataset.opened(at.shard) == nullptr) fresh.push_back(at.shard);
  std::sort(fresh.begin(), fresh.end());
  fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
  if (fresh.size() < 2) return;  // a single one is opened when it is used
  try {
    run_rows(*pool_, fresh.size(), [&](std::size_t i) { static_cast<void>(setup_.dataset.shard(fresh[i])); });
  } catch (const Error&) {  // is thrown again when the shard is used, in the order of the samples
  }
}

// Decides where each sample is copied to, unless it is on the device already.
void BatchMaker::place_samples(Slot& slot) {
  Work& work = work_[slot.number];
  work.sources.clear();
  work.sizes.clear();
  ++placed_;
  std::uint64_t offset = 0;  // in the copy of the stored batch
  std::uint64_t fetched = 0;
  for (std::uint32_t part = 0; part < setup_.forms.size(); ++part) {
    if (part == 0 && setup_.identity) {
      place_part(slot, part, slot.images->data(), fetched);
      continue;
    }
    offset = round_up(offset, kPartAlign);
    place_part(slot, part, work.raw ? work.raw->data() + offset : nullptr, fetched);
    offset += setup_.forms[part]->most_bytes_to_device() * setup_.options.batch_size;
  }
}

// `target`: in the batch, one sample after the other. Null: they are read in place.
void BatchMaker::place_part(Slot& slot, std::uint32_t part, std::byte* target, std::uint64_t& fetched) {
  Work& work = work_[slot.number];
  fetched = round_up(fetched, kPartAlign);
  for (std::size_t i = 0; i < slot.locations.size(); ++i) {
    const std::uint64_t sample = work.indices.samples[i];
    const auto [size, mapped] = setup_.forms[part]->locate(setup_.dataset, slot.locations[i]);
    const std::byte* there = resident_ ? resident_->find(resident_key(sample, part)) : nullptr;
    if (there == nullptr) {
      std::uint64_t& last_placed = last_placed_[slot.locations[i].shard];
      FetchItem item{sample, part, slot.locations[i], target, size, fetched, last_placed != placed_, mapped};
      last_placed = placed_;
      if (resident_)
        if (std::byte* const place = resident_->add(resident_key(sample, part), size)) item.target = place;
      there = item.target;
      slot.fetch.push_back(item);
      fetched += size;
    }
    if (target != nullptr) target += size;
    work.sources.push_back(there);
    work.sizes.push_back(size);
  }
}

void BatchMaker::abandon(const Slot& slot) noexcept {
  if (resident_)
    for (const FetchItem& item : slot.fetch) resident_->forget(resident_key(item.sample, item.part));
  if (!filler_) return;
  try {  // what was queued for it may read shards where they are mapped
    lanes_[lane_].stream->record().wait();
  } catch (const std::exception&) {  // an error of its reads
  }
  filler_->give_up_batch(slot.epoch, slot.index);
}

void BatchMaker::end(Slot& slot) {
  const ProfilerRange range(*setup_.device, "shard: end batch");
  if (!slot.fetch.empty()) {
    transport_->end(slot);
    // Reads of the host device may fail, and samples that later batches use must have been read.
    if (resident_ && setup_.device->info().kind == DeviceKind::host) wait_copied(slot);
  } else {
    slot.copied_event = Event();
  }
  wait_released(slot);
  work_[slot.number].draws.finish();
  std::swap(slot.indices, work_[slot.number].indices);
  write_columns(slot);
  lane_ = (lane_ + 1) % lanes_.size();
  Lane& lane = lanes_[lane_];
  for (const Event& event : slot.released) lane.stream->wait(event);  // usually over: nothing is queued
  lane.stream->upload(slot.columns_copy);  // beside the copies of this and later batches
  lane.stream->wait(slot.copied_event);
  lane.stream->may_leave_out(slot.unwanted);
  queue_transforms(slot, lane);
  queue_fields(slot, lane);
  slot.ready_event = lane.stream->record();
  const std::vector<std::uint64_t>& sizes = work_[slot.number].sizes;
  stats_.bytes += std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  if (!filler_) return;
  // A device that reads host memory may still read samples where they are mapped.
  filler_->after_batch(slot.epoch, slot.index,
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
          slot.fetch.clear();  // its samples are being copied, also those that stay on the device
          throw Error(ErrorCode::cancelled, "stopped while a consumer still reads the slot");
        }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;  // else the consumer's work failed, so it has ended
    }
  }
  stats_.consumer_seconds += watch.seconds();
}

void BatchMaker::write_columns(Slot& slot) {
  const BatchIndices& indices = slot.indices;
  const std::uint64_t rows = indices.samples.size();
  slot.ids.shape[0] = slot.mask.shape[0] = rows;
  static_assert(sizeof(std::int64_t) == sizeof(indices.samples[0]));  // and indices are below 2^63
  std::copy_n(indices.samples.data(), rows,
              reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(slot.ids.host)));
  std::copy_n(indices.mask.data(), rows,
              reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(slot.mask.host)));
  columns_.gather(slot, work_[slot.number].draws.steps());
}

// Where the samples of the images or of a further field are, for the device.
// If it reads them in place, the transport knows.
std::span<const std::byte* const> BatchMaker::sources_of(const Slot& slot, std::size_t part) const {
  const Work& work = work_[slot.number];
  const std::size_t rows = slot.locations.size();
  const std::size_t after = setup_.forms.size() - part;
  std::span<const std::byte* const> sources = transport_->sources(slot);
  if (sources.empty()) sources = work.sources;
  return sources.subspan(sources.size() - after * rows, rows);
}

std::span<const std::uint64_t> BatchMaker::sizes_of(const Slot& slot, std::size_t part) const {
  const std::size_t rows = slot.locations.size();
  return std::span<const std::uint64_t>(work_[slot.number].sizes).subspan(part * rows, rows);
}

void BatchMaker::queue_fields(Slot& slot, Lane& lane) {
  if (setup_.fields.empty()) return;
  const std::vector<DrawnSteps> views = work_[slot.number].draws.steps();
  for (std::size_t number = 0; number < setup_.fields.size(); ++number)
    lane.fields->queue(*lane.stream, slot, number, {sources_of(slot, number + 1), sizes_of(slot, number + 1)},
                       views);
}

void BatchMaker::queue_transforms(Slot& slot, Lane& lane) {
  const Work& work = work_[slot.number];
  if (setup_.identity) {
    if (resident_) queue_gather(slot, lane);
    return;
  }
  std::span<const std::byte* const> sources = sources_of(slot, 0);
  const bool once = decodes_once(setup_.dataset.info(), setup_.options);
  if (once) {
    queue_decoding(*lane.stream, *setup_.form, sources, sizes_of(slot, 0), lane.decoded->data(),
                   slot.verdict->entries(), decoded_);
    sources = decoded_;
  }
  for (std::size_t view = 0; view < transforms_.size(); ++view) {
    TransformWork& transform = transforms_[view];
    transform.sources = sources;
    work.draws.describe(view, transform);
    transform.pairs = slot.pairs;
    transform.augment_scratch = lane.augment ? lane.augment->data() : nullptr;
    transform.target = slot.images->data() + slot.images_offsets[view];
    if (!once) {
      setup_.form->describe(transform, sizes_of(slot, 0), lane.decoded ? lane.decoded->data() : nullptr);
      if (slot.verdict) transform.broken = slot.verdict->entries();
    }
    lane.stream->transform(transform);
  }
}

// Resident samples that are delivered as they are.
void BatchMaker::queue_gather(Slot& slot, Lane& lane) {
  const Work& work = work_[slot.number];
  const std::uint64_t size = transforms_[0].stored.size_bytes();
  gathered_.clear();
  for (std::size_t i = 0; i < slot.locations.size(); ++i) {
    std::byte* const row = slot.images->data() + i * size;
    if (work.sources[i] != row) gathered_.push_back({row, work.sources[i], size});
  }
  lane.stream->gather(gathered_);
}

}  // namespace shard
