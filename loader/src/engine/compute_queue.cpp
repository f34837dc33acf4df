#include "engine/compute_queue.hpp"

#include <algorithm>
#include <utility>

#include "fields/views.hpp"
#include "transform/check_work.hpp"
#include "transport/sample_io.hpp"

namespace shard {

namespace {

// The samples of the images or of a further field. `sources`: those of all parts, or of the last ones if the
// images are delivered as they are stored.
FieldMaker::Samples samples_of(const PlacedBatch& batch, std::span<const std::byte* const> sources,
                               std::size_t parts, std::size_t part) {
  const std::size_t rows = batch.sizes.size() / parts;
  const StoredFrames all{batch.sizes, batch.files, batch.unindexed};
  return {sources.subspan(sources.size() - (parts - part) * rows, rows), all.part(part * rows, rows)};
}

}  // namespace

ComputeQueue::ComputeQueue(const LoaderSetup& setup, const ComputeMemory& memory, const LateMemory& late,
                           ThreadPool& pool)
    : setup_(setup),
      pool_(pool),
      late_(late),
      decoder_(*setup.device, memory.decoder),
      transforms_(setup.transforms),
      columns_(setup.dataset, setup.options) {
  Device& device = *setup.device;
  for (LateGroup& group : late_groups_) {
    if (late.group_bytes.empty()) continue;
    group.host = device.allocate_pinned(late.group_size_bytes());
    group.device = device.allocate_device(late.group_size_bytes());
  }
  const auto allocate = [&](std::uint64_t bytes) {
    return bytes > 0 ? device.allocate_device(bytes) : nullptr;
  };
  for (std::uint64_t i = 0; i < memory.rooms; ++i) rooms_.push_back({allocate(memory.decoded_bytes), {}});
  for (std::uint64_t i = 0; i < memory.lanes; ++i)
    lanes_.push_back({nullptr, allocate(memory.augment_bytes), std::make_unique<FieldMaker>(setup),
                      device.create_stream()});
}

void ComputeQueue::add(Slot& slot, const PlacedBatch& batch, std::span<const std::byte* const> in_place) {
  const std::vector<DrawnSteps> views = batch.draws.steps();
  write_columns(slot, views);
  choose_lane();
  Lane& lane = lanes_[lane_];
  for (const Event& event : slot.released) lane.stream->wait(event);  // usually over: nothing is queued
  lane.stream->upload(slot.columns_copy);  // beside the copies of this and later batches
  find_copies(slot);
  for (const Event& event : copied_) lane.stream->wait(event);
  lane.stream->may_leave_out(slot.unwanted);
  std::span<const std::byte* const> sources = in_place.empty() ? batch.sources : in_place;
  if (!in_place.empty() && batch.late < slot.locations.size()) sources = with_late(batch, in_place);
  lane.fields->set_shapes(slot, views);
  try {
    if (!setup_.identity)
      queue_transforms(slot, batch, sources, views, lane);
    else if (setup_.options.transport == TransportKind::resident)
      queue_gather(slot, batch, lane);
    queue_fields(slot, batch, sources, views, false, 0, slot.locations.size(), lane);
  } catch (...) {  // what was queued for it still reads and writes the slot, whose next batch waits for that
    slot.ready_event = lane.stream->record();
    throw;
  }
  slot.ready_event = lane.stream->record();
}

// The transport knows nothing of late rows, which have no source yet.
std::span<const std::byte* const> ComputeQueue::with_late(const PlacedBatch& batch,
                                                          std::span<const std::byte* const> in_place) {
  sources_.clear();
  const std::size_t rows = batch.sizes.size() / setup_.forms.size();
  for (const auto& form : setup_.forms) {
    const std::size_t there = form->may_be_late() ? batch.late : rows;
    sources_.insert(sources_.end(), in_place.begin(), in_place.begin() + static_cast<std::ptrdiff_t>(there));
    sources_.insert(sources_.end(), rows - there, nullptr);
    in_place = in_place.subspan(there);
  }
  return sources_;
}

// Samples that stay on the device may have been copied for a batch that another lane made.
void ComputeQueue::find_copies(const Slot& slot) {
  copied_.assign(1, slot.copied_event);
  if (setup_.options.transport != TransportKind::resident) return;
  copied_.insert(copied_.end(), last_copied_.begin(), last_copied_.end());
  if (slot.fetch.empty()) return;
  last_copied_[1] = std::exchange(last_copied_[0], slot.copied_event);
}

// A room of its own for each lane is read and written in the order of that lane.
void ComputeQueue::choose_lane() {
  lane_ = (lane_ + 1) % lanes_.size();
  room_ = rooms_.size() == lanes_.size() ? lane_ : (room_ + 1) % rooms_.size();
  lanes_[lane_].room = &rooms_[room_];
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
                                    std::span<const std::byte* const> sources,
                                    std::span<const DrawnSteps> views, Lane& lane) {
  const std::size_t rows = slot.locations.size();
  const std::size_t there = std::min(batch.late, rows);
  queue_rows(slot, batch, samples_of(batch, sources, setup_.forms.size(), 0), 0, there, lane);
  queue_fields(slot, batch, sources, views, true, 0, there, lane);
  for (std::size_t first = there; first < rows;) first = queue_late(slot, batch, first, views, lane);
}

void ComputeQueue::queue_fields(const Slot& slot, const PlacedBatch& batch,
                                std::span<const std::byte* const> sources, std::span<const DrawnSteps> views,
                                bool late, std::size_t first, std::size_t rows, Lane& lane) {
  for (std::size_t field = 0; field < setup_.fields.size() && rows > 0; ++field) {
    if (setup_.forms[field + 1]->may_be_late() != late) continue;
    const FieldMaker::Samples all = samples_of(batch, sources, setup_.forms.size(), field + 1);
    std::span<const SampleSize> shapes;
    if (setup_.forms[field + 1]->is_free()) shapes = std::span(batch.shapes).subspan(first, rows);
    lane.fields->queue(*lane.stream, slot, field,
                       {all.sources.subspan(first, rows), all.frames.part(first, rows)}, views, first, shapes,
                       decoder_);
  }
}

void ComputeQueue::queue_rows(const Slot& slot, const PlacedBatch& batch, const FieldMaker::Samples& images,
                              std::size_t first, std::size_t rows, Lane& lane) {
  const bool once = setup_.form->decodes_first(transforms_.size(), setup_.device->info());
  if (!once) return queue_views(slot, batch, images, first, rows, false, lane);
  if (!setup_.form->decodes_in_parts()) {
    queue_decoding(*lane.stream, *setup_.form, images.sources.subspan(first, rows),
                   images.frames.part(first, rows), lane.room->memory->data(),
                   slot.verdict->entries() + first, decoded_);
    return queue_views(slot, batch, images, first, rows, true, lane);
  }
  for (std::size_t done = 0; done < rows;) {
    const std::size_t count = queue_decoder(slot, batch, images, first + done, rows - done, lane);
    queue_views(slot, batch, images, first + done, count, true, lane);
    lane.room->used = lane.stream->record();
    done += count;
  }
}

std::size_t ComputeQueue::queue_decoder(const Slot& slot, const PlacedBatch& batch,
                                        const FieldMaker::Samples& images, std::size_t first,
                                        std::size_t rows, Lane& lane) {
  const SampleSpec spec = setup_.form->transform_input();
  if (setup_.form->is_free())
    shapes_.assign(batch.shapes.begin() + static_cast<std::ptrdiff_t>(first),
                   batch.shapes.begin() + static_cast<std::ptrdiff_t>(first + rows));
  else
    shapes_.assign(rows, SampleSize{spec.height, spec.width});
  const std::size_t step = setup_.options.mix.enabled() ? 2 : 1;
  const std::size_t count = FrameDecoder::fit(spec, shapes_, step, lane.room->memory->size_bytes());
  find_boxes(batch, first, count);
  after_ = copied_;
  after_.push_back(lane.room->used);
  decoder_.queue(*lane.stream, after_, spec,
                 {images.sources.subspan(first, count), images.frames.part(first, count),
                  std::span(shapes_).first(count), boxes_, slot.verdict->entries() + first},
                 lane.room->memory->data(), decoded_);
  return count;
}

// What all views need of each sample.
void ComputeQueue::find_boxes(const PlacedBatch& batch, std::size_t first, std::size_t rows) {
  boxes_.clear();
  for (std::size_t view = 0; view < transforms_.size(); ++view) {
    TransformWork& transform = transforms_[view];
    transform.delivered = batch.views[view].delivered;
    batch.draws.describe(view, first, rows, transform);
    for (std::size_t row = 0; row < rows; ++row) {
      const SampleBox box = needed_box(transform, row);
      if (view == 0)
        boxes_.push_back(box);
      else
        boxes_[row] = united(boxes_[row], box);
    }
  }
}

// `decoded`: decoded_ has the samples of these rows.
void ComputeQueue::queue_views(const Slot& slot, const PlacedBatch& batch, const FieldMaker::Samples& images,
                               std::size_t first, std::size_t rows, bool decoded, Lane& lane) {
  for (std::size_t view = 0; view < transforms_.size(); ++view) {
    TransformWork& transform = transforms_[view];
    transform.sources =
        decoded ? std::span<const std::byte* const>(decoded_) : images.sources.subspan(first, rows);
    transform.delivered = batch.views[view].delivered;
    if (setup_.form->is_free()) transform.sizes = std::span(batch.shapes).subspan(first, rows);
    batch.draws.describe(view, first, rows, transform);
    transform.pairs = slot.pairs;
    if (!slot.pairs.empty()) transform.pairs = transform.pairs.subspan(first / 2, rows / 2);
    transform.augment_scratch = lane.augment ? lane.augment->data() : nullptr;
    transform.target = slot.images->data() + slot.images_offsets[view];
    if (transform.patch != 0)
      transform.tokens = std::span(batch.views[view].tokens).subspan(first, rows);
    else
      transform.target += first * transform.delivered.size_bytes();
    if (!decoded) {
      setup_.form->describe(transform, images.frames.part(first, rows),
                            lane.room->memory ? lane.room->memory->data() : nullptr);
      if (slot.verdict) transform.broken = slot.verdict->entries() + first;
    }
    lane.stream->transform(transform);
  }
}

// The row after those from `first` on that one group holds.
std::size_t ComputeQueue::group_end(const PlacedBatch& batch, std::size_t first) const {
  const std::size_t step = setup_.options.mix.enabled() ? 2 : 1;
  const std::size_t rows = batch.sizes.size() / setup_.forms.size();
  const SampleSpec input = setup_.form->transform_input();
  std::vector<std::uint64_t> used(setup_.forms.size());
  std::uint64_t decoded = 0;
  for (std::size_t end = first; end < rows; end += step) {
    bool fits = true;
    for (std::size_t part = 0; part < used.size(); ++part) {
      if (late_.group_bytes[part] == 0) continue;
      for (std::size_t row = end; row < end + step; ++row) used[part] += batch.sizes[part * rows + row];
      fits = fits && used[part] <= late_.group_bytes[part];
    }
    for (std::size_t row = end; row < end + step; ++row)
      decoded += unpacked_room(
          input.is_free() ? input.sized(batch.shapes[row].height, batch.shapes[row].width) : input);
    if (end > first && !(fits && decoded <= late_.decoded_bytes)) return end;
  }
  return rows;
}

// Stages as many rows from `first` on as one group holds, and queues what makes them. Returns the row after
// them. Errors name shard and sample.
std::size_t ComputeQueue::queue_late(const Slot& slot, const PlacedBatch& batch, std::size_t first,
                                     std::span<const DrawnSteps> views, Lane& lane) {
  LateGroup& group = late_groups_[late_group_];
  late_group_ = (late_group_ + 1) % late_groups_.size();
  const std::size_t end = group_end(batch, first);
  const std::size_t rows = slot.locations.size();
  late_items_.clear();
  late_sources_.assign(batch.sizes.size(), nullptr);
  late_copies_.clear();
  std::uint64_t begin = 0;
  for (std::uint32_t part = 0; part < setup_.forms.size(); ++part) {
    if (late_.group_bytes[part] == 0) continue;
    std::uint64_t used = begin;
    for (std::size_t row = first; row < end; ++row) {
      const std::uint64_t size = batch.sizes[part * rows + row];
      std::byte* const target = group.device->data() + used;
      late_items_.push_back({slot.indices.samples[row], part, slot.locations[row], target, size, used, true,
                             nullptr, !batch.unindexed.empty() && batch.unindexed[part * rows + row] != 0});
      late_sources_[part * rows + row] = target;
      used += size;
    }
    late_copies_.push_back({group.device->data() + begin, group.host->data() + begin, used - begin});
    begin += late_.group_bytes[part];
  }
  group.made.wait();  // the device has read what was in it
  run_rows(pool_, late_items_.size(), [&](std::size_t i) {
    const FetchItem& item = late_items_[i];
    stage_row(setup_.dataset, *setup_.forms[item.part], item, group.host->data() + item.offset, slot.verify);
  });
  lane.stream->copy(late_copies_);
  group.made = lane.stream->record();  // if what follows fails, the copy still reads it
  copied_.assign(1, group.made);
  queue_rows(slot, batch, samples_of(batch, late_sources_, setup_.forms.size(), 0), first, end - first, lane);
  queue_fields(slot, batch, late_sources_, views, true, first, end - first, lane);
  group.made = lane.stream->record();
  return end;
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
