#include "engine/compute_queue.hpp"

#include <algorithm>

#include "fields/views.hpp"
#include "transport/sample_io.hpp"

namespace shard {

namespace {

// The samples of the images or of a further field. `sources`: those of all parts, or of the last ones if the
// images are delivered as they are stored.
FieldMaker::Samples samples_of(const PlacedBatch& batch, std::span<const std::byte* const> sources,
                               std::size_t parts, std::size_t part) {
  const std::size_t rows = batch.sizes.size() / parts;
  return {sources.subspan(sources.size() - (parts - part) * rows, rows),
          std::span<const std::uint64_t>(batch.sizes).subspan(part * rows, rows)};
}

}  // namespace

ComputeQueue::ComputeQueue(const LoaderSetup& setup, const ComputeMemory& memory, const LateMemory& late)
    : setup_(setup), transforms_(setup.transforms), late_(late), columns_(setup.dataset, setup.options) {
  Device& device = *setup.device;
  if (late.size_bytes() > 0) {
    late_host_ = device.allocate_pinned(late.size_bytes());
    late_device_ = device.allocate_device(late.size_bytes());
  }
  const auto allocate = [&](std::uint64_t bytes) {
    return bytes > 0 ? device.allocate_device(bytes) : nullptr;
  };
  for (std::uint64_t i = 0; i < memory.lanes; ++i)
    lanes_.push_back({allocate(memory.decoded_bytes), allocate(memory.augment_bytes),
                      std::make_unique<FieldMaker>(setup), device.create_stream()});
}

void ComputeQueue::add(Slot& slot, const PlacedBatch& batch, std::span<const std::byte* const> in_place) {
  const std::vector<DrawnSteps> views = batch.draws.steps();
  write_columns(slot, views);
  lane_ = (lane_ + 1) % lanes_.size();
  Lane& lane = lanes_[lane_];
  for (const Event& event : slot.released) lane.stream->wait(event);  // usually over: nothing is queued
  lane.stream->upload(slot.columns_copy);  // beside the copies of this and later batches
  lane.stream->wait(slot.copied_event);
  lane.stream->may_leave_out(slot.unwanted);
  std::span<const std::byte* const> sources = in_place.empty() ? batch.sources : in_place;
  if (!in_place.empty() && !batch.late.empty()) sources = with_late(batch, in_place);
  const std::size_t parts = setup_.forms.size();
  if (!setup_.identity)
    queue_transforms(slot, batch, samples_of(batch, sources, parts, 0), lane);
  else if (setup_.options.transport == TransportKind::resident)
    queue_gather(slot, batch, lane);
  for (std::size_t field = 0; field < setup_.fields.size(); ++field)
    lane.fields->queue(*lane.stream, slot, field, samples_of(batch, sources, parts, field + 1), views);
  slot.ready_event = lane.stream->record();
}

// The transport knows nothing of late rows, which have no source yet.
std::span<const std::byte* const> ComputeQueue::with_late(const PlacedBatch& batch,
                                                          std::span<const std::byte* const> in_place) {
  sources_.assign(in_place.begin(), in_place.end());
  for (const std::uint32_t row : batch.late) sources_.insert(sources_.begin() + row, nullptr);
  return sources_;
}

void ComputeQueue::wait() { lanes_[lane_].stream->record().wait(); }

void ComputeQueue::write_columns(Slot& slot, std::span<const DrawnSteps> views) {
  const BatchIndices& indices = slot.indices;
  const std::uint64_t rows = indices.samples.size();
  slot.ids.shape[0] = slot.mask.shape[0] = rows;
  static_assert(sizeof(std::int64_t) == sizeof(indices.samples[0]));  // and indices are below 2^63
  std::copy_n(indices.samples.data(), rows,
              reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(slot.ids.host)));
  std::copy_n(indices.mask.data(), rows,
              reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(slot.mask.host)));
  columns_.gather(slot, views);
}

// Rows for whose samples there was no room wait for the others.
void ComputeQueue::queue_transforms(const Slot& slot, const PlacedBatch& batch,
                                    const FieldMaker::Samples& images, Lane& lane) {
  std::size_t first = 0;
  for (const std::uint32_t late : batch.late) {
    if (late > first) queue_rows(slot, batch, images, first, late - first, lane);
    first = late + 1;
  }
  if (first < images.sources.size() || batch.late.empty())
    queue_rows(slot, batch, images, first, images.sources.size() - first, lane);
  queue_late(slot, batch, lane);
}

void ComputeQueue::queue_rows(const Slot& slot, const PlacedBatch& batch, const FieldMaker::Samples& images,
                              std::size_t first, std::size_t rows, Lane& lane) {
  std::span<const std::byte* const> sources = images.sources.subspan(first, rows);
  const std::span<const std::uint64_t> sizes = images.sizes.subspan(first, rows);
  const bool once = decodes_once(setup_.dataset.info(), setup_.options);
  if (once) {
    queue_decoding(*lane.stream, *setup_.form, sources, sizes, lane.decoded->data(), slot.verdict->entries(),
                   decoded_);
    sources = decoded_;
  }
  for (std::size_t view = 0; view < transforms_.size(); ++view) {
    TransformWork& transform = transforms_[view];
    transform.sources = sources;
    transform.delivered = batch.views[view].delivered;
    if (!batch.shapes.empty()) transform.sizes = std::span(batch.shapes).subspan(first, rows);
    batch.draws.describe(view, first, rows, transform);
    transform.pairs = slot.pairs;
    if (!slot.pairs.empty()) transform.pairs = transform.pairs.subspan(first / 2, rows / 2);
    transform.augment_scratch = lane.augment ? lane.augment->data() : nullptr;
    transform.target = slot.images->data() + slot.images_offsets[view];
    if (transform.patch != 0)
      transform.tokens = std::span(batch.views[view].tokens).subspan(first, rows);
    else
      transform.target += first * transform.delivered.size_bytes();
    if (!once) {
      setup_.form->describe(transform, sizes, lane.decoded ? lane.decoded->data() : nullptr);
      if (slot.verdict) transform.broken = slot.verdict->entries() + first;
    }
    lane.stream->transform(transform);
  }
}

// One sample after the other through memory for one (two, if they are mixed). Errors name shard and sample.
void ComputeQueue::queue_late(const Slot& slot, const PlacedBatch& batch, Lane& lane) {
  std::vector<const std::byte*> sources;
  for (std::size_t i = 0; i < batch.late.size(); i += late_.samples) {
    lane.stream->record().wait();  // the samples before have been read
    const std::uint32_t first = batch.late[i];
    sources.assign(batch.sizes.size(), nullptr);
    for (std::size_t k = 0; k < late_.samples; ++k) {
      const std::uint32_t row = first + static_cast<std::uint32_t>(k);
      const Dataset::Location& at = slot.locations[row];
      const std::uint64_t offset = k * late_.sample_bytes;
      const FetchItem item{slot.indices.samples[row], 0, at, nullptr, batch.sizes[row], 0, true, nullptr};
      stage_row(setup_.dataset, *setup_.form, item, late_host_->data() + offset, slot.verify);
      const CopyItem copy{late_device_->data() + offset, late_host_->data() + offset, batch.sizes[row]};
      lane.stream->copy({&copy, 1});
      sources[row] = copy.target;
    }
    queue_rows(slot, batch, {sources, batch.sizes}, first, late_.samples, lane);
  }
  if (!batch.late.empty()) lane.stream->record().wait();
}

// Resident samples that are delivered as they are.
void ComputeQueue::queue_gather(const Slot& slot, const PlacedBatch& batch, Lane& lane) {
  const std::uint64_t size = transforms_[0].stored.size_bytes();
  gathered_.clear();
  for (std::size_t i = 0; i < slot.locations.size(); ++i) {
    std::byte* const row = slot.images->data() + i * size;
    if (batch.sources[i] != row) gathered_.push_back({row, batch.sources[i], size});
  }
  lane.stream->gather(gathered_);
}

}  // namespace shard
