#include "engine/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "base/system/shared_rows.hpp"
#include "fields/views.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

// Where samples are is read from the heads of their shards: 0.6 us a sample, of the 2 us that a feeder's
// thread has where 470,000 originals/s are decoded (H200).
constexpr std::size_t kHelpers = 3;  // threads
constexpr std::size_t kRowsAtOnce = 32;

}  // namespace

Placement::Placement(const LoaderSetup& setup, std::size_t slots)
    : setup_(setup),
      batches_(slots),
      is_open_(setup.dataset.info().shards.size()),
      last_placed_(setup.dataset.info().shards.size()) {
  has_one_size_ = std::all_of(setup.forms.begin(), setup.forms.end(),
                              [](const auto& form) { return form->fixed_size() && !form->may_be_late(); });
}

void Placement::prepare(const Slot& slot, const SlotMemory& memory) {
  if (memory.raw_bytes > 0) batches_[slot.number].raw = setup_.device->allocate_device(memory.raw_bytes);
  may_be_late_ = memory.raw_bytes > 0;
}

void Placement::keep_resident(const ResidentMemory& memory) {
  resident_.emplace(*setup_.device, memory.capacity_bytes, memory.alignment);
}

void Placement::choose(Slot& slot, ThreadPool& pool) {
  PlacedBatch& batch = batches_[slot.number];
  batch.is_file.clear();
  batch.draws.finish();  // of a batch that failed
  order_batches(slot);
  slot.locations.clear();
  for (const std::uint64_t sample : batch.indices.samples)
    slot.locations.push_back(setup_.dataset.locate(sample));
  if (slot.verdict && slot.again) slot.verdict->restart_batch(slot.locations);
  if (slot.verdict && !slot.again) slot.verdict->start_batch(slot.locations);
  batch.shapes.clear();
  if (!setup_.form->is_free()) draw(slot, pool);  // else once sizes are known
}

void Placement::order_batches(Slot& slot) {
  BatchIndices& all = batches_[slot.number].indices;
  setup_.order.batch(slot.epoch, slot.index, all);
  slot.ends.assign(1, all.samples.size());
  while (slot.ends.size() < slot.batches) {
    setup_.order.batch(slot.epoch, slot.index + slot.ends.size(), one_);
    all.samples.insert(all.samples.end(), one_.samples.begin(), one_.samples.end());
    all.mask.insert(all.mask.end(), one_.mask.begin(), one_.mask.end());
    all.draws.insert(all.draws.end(), one_.draws.begin(), one_.draws.end());
    slot.ends.push_back(all.samples.size());
  }
}

void Placement::replace(Slot& slot, std::size_t row, std::uint64_t sample) {
  batches_[slot.number].indices.samples[row] = sample;
  slot.locations[row] = setup_.dataset.locate(sample);
}

void Placement::set_files(const Slot& slot, std::vector<std::uint8_t> is_file) {
  batches_[slot.number].is_file = std::move(is_file);
}

bool Placement::is_resident(std::uint64_t sample) const {
  if (!resident_) return false;
  for (std::uint32_t part = 0; part < setup_.forms.size(); ++part) {
    const std::uint64_t key = resident_key(sample, part);
    const auto made = made_.find(key);
    if (made == made_.end() || resident_->find(key, made->second.size_bytes) == nullptr) return false;
  }
  return true;
}

bool Placement::has_files(const Slot& slot) const {
  const std::vector<std::uint8_t>& is_file = batches_[slot.number].is_file;
  return std::find(is_file.begin(), is_file.end(), 1) != is_file.end();
}

std::vector<std::uint64_t> Placement::take_refused_files(const Slot& slot) {
  std::vector<std::uint64_t> refused;
  const std::vector<std::uint8_t>& is_file = batches_[slot.number].is_file;
  for (std::size_t row = 0; row < is_file.size(); ++row) {
    if (is_file[row] == 0 || slot.verdict->entries()[row] == 0) continue;
    refused.push_back(slot.indices.samples[row]);
    if (resident_) resident_->forget(resident_key(refused.back(), 0));
  }
  return refused;
}

void Placement::draw(Slot& slot, ThreadPool& pool) {
  PlacedBatch& batch = batches_[slot.number];
  setup_.set_views_of_batch(batch.indices, batch.shapes, batch.views);
  if (!setup_.identity || setup_.targets)
    batch.draws.start({setup_, slot.epoch, batch.indices.draws, batch.shapes, batch.views}, pool);
  draw_pairs(slot);
}

void Placement::draw_pairs(Slot& slot) const {
  const LoaderOptions& options = setup_.options;
  if (!options.mix.enabled()) return;
  // Counted over all ranks, whose rows are neighbours in the global batch.
  const std::uint64_t first = (slot.index * options.world_size + options.rank) * options.batch_size / 2;
  slot.pairs.clear();
  for (std::uint64_t i = 0; i < slot.locations.size() / 2; ++i)
    slot.pairs.push_back(
        draw_mix(batches_[slot.number].views[0].delivered, options.mix, options.seed, slot.epoch, first + i));
}

// Opens the batch's shards that were not opened yet, on several threads: a first shuffled batch touches
// hundreds.
void Placement::open_shards(const Slot& slot, ThreadPool& pool) {
  std::vector<std::uint32_t> fresh;
  for (const Dataset::Location& at : slot.locations) {
    if (is_open_[at.shard] != 0) continue;
    is_open_[at.shard] = setup_.dataset.opened(at.shard) != nullptr ? 1 : 0;
    if (is_open_[at.shard] == 0) fresh.push_back(at.shard);
  }
  std::sort(fresh.begin(), fresh.end());
  fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
  if (fresh.size() < 2) return;  // a single one is opened when it is used
  try {
    run_rows(pool, fresh.size(), [&](std::size_t i) { static_cast<void>(setup_.dataset.shard(fresh[i])); });
  } catch (const Error&) {  // is thrown again when the shard is used, in the order of the samples
  }
}

void Placement::place(Slot& slot, ThreadPool& pool) {
  open_shards(slot, pool);
  PlacedBatch& batch = batches_[slot.number];
  batch.sources.clear();
  batch.sizes.clear();
  batch.files.clear();
  batch.unindexed.clear();
  batch.late = slot.locations.size();
  if (setup_.form->is_free()) {
    find_shapes(slot, pool);
    draw(slot, pool);
  }
  locate(slot, pool);
  if (may_be_late_) choose_late(slot);
  ++placed_;
  std::uint64_t offset = 0;  // in the copy of the stored batch
  std::uint64_t fetched = 0;
  for (std::uint32_t part = 0; part < setup_.forms.size(); ++part) {
    if (part == 0 && setup_.identity) {
      place_part(slot, part, slot.images->data(), fetched);
      continue;
    }
    offset = round_up(offset, kPartAlign);
    place_part(slot, part, batch.raw ? batch.raw->data() + offset : nullptr, fetched);
    offset += setup_.forms[part]->room_bytes(setup_.options);
  }
}

void Placement::find_shapes(const Slot& slot, ThreadPool& pool) {
  PlacedBatch& batch = batches_[slot.number];
  batch.shapes.resize(slot.locations.size());
  share_rows(pool, kHelpers, slot.locations.size(), kRowsAtOnce, [&](std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row)
      batch.shapes[row] = setup_.form->size_of(setup_.dataset, slot.locations[row]);
  });
  for (std::size_t field = 0; field < setup_.fields.size(); ++field)
    if (setup_.forms[field + 1]->is_free()) check_shapes(slot, field);
}

void Placement::check_shapes(const Slot& slot, std::size_t field) const {
  const PlacedBatch& batch = batches_[slot.number];
  const StoredForm& form = *setup_.forms[field + 1];
  for (std::size_t row = 0; row < slot.locations.size(); ++row) {
    const Dataset::Location& at = slot.locations[row];
    const SampleSize own = form.size_of(setup_.dataset, at);
    const SampleSize& image = batch.shapes[row];
    if (own == image) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: it has {} x {} (rows x columns), but its image has {} x {}, so it cannot "
                            "follow it: leave the field out, or convert it without size=any",
                            form.name_of(setup_.dataset.shard(at.shard), at.sample), own.height, own.width,
                            image.height, image.width));
  }
}

void Placement::locate(const Slot& slot, ThreadPool& pool) {
  located_.clear();
  if (has_one_size_ && batches_[slot.number].is_file.empty()) return;
  const std::size_t rows = slot.locations.size();
  located_.resize(setup_.forms.size() * rows);
  const auto locate_rows = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i)
      located_[i] = locate(slot, static_cast<std::uint32_t>(i / rows), i % rows);
  };
  if (setup_.dataset.is_unconverted())
    locate_rows(0, located_.size());  // what was made is kept by this thread
  else
    share_rows(pool, kHelpers, located_.size(), kRowsAtOnce, locate_rows);
}

StoredSample Placement::locate(const Slot& slot, std::uint32_t part, std::size_t row) {
  const StoredForm& form = *setup_.forms[part];
  const Dataset::Location& at = slot.locations[row];
  const PlacedBatch& batch = batches_[slot.number];
  if (part == 0 && !batch.is_file.empty() && batch.is_file[row] != 0)
    return form.locate_file(setup_.dataset, at);
  if (!resident_ || !setup_.dataset.is_unconverted()) return form.locate(setup_.dataset, at);
  const std::uint64_t key = resident_key(batch.indices.samples[row], part);
  const auto made = made_.find(key);
  if (made != made_.end()) return made->second;
  return made_[key] = form.locate(setup_.dataset, at);
}

// The first row for which there is no room in some part, and all after it. Mixed pairs stay together.
void Placement::choose_late(const Slot& slot) {
  PlacedBatch& batch = batches_[slot.number];
  const std::size_t step = setup_.options.mix.enabled() ? 2 : 1;
  for (std::size_t part = 0; part < setup_.forms.size(); ++part) {
    const auto& form = setup_.forms[part];
    if (!form->may_be_late()) continue;
    const bool of_images = form == setup_.form;
    const std::uint64_t room = form->room_bytes(setup_.options);
    // Those of further fields are decoded in parts (FieldMaker), and images of some codecs.
    const bool bounds_decoded = of_images && form->decoded_by_device() && !form->decodes_in_parts();
    const std::uint64_t decoded_room = bounds_decoded ? form->decoded_room_bytes(setup_.options) : 0;
    std::uint64_t used = 0;
    std::uint64_t decoded = 0;
    for (std::size_t row = 0; row < batch.late; ++row) {
      used += located_[part * slot.locations.size() + row].size_bytes;
      if (bounds_decoded) {
        const SampleSize& shape = batch.shapes[row];
        decoded += round_up(form->transform_input().sized(shape.height, shape.width).size_bytes(),
                            TransformWork::kUnpackedAlign);
      }
      if (used > room || decoded > decoded_room) batch.late = row / step * step;
    }
  }
}

// `target`: in the batch, one sample after the other. Null: they are read in place.
void Placement::place_part(Slot& slot, std::uint32_t part, std::byte* target, std::uint64_t& fetched) {
  PlacedBatch& batch = batches_[slot.number];
  fetched = round_up(fetched, kPartAlign);
  const std::size_t rows = slot.locations.size();
  const StoredForm& form = *setup_.forms[part];
  const std::size_t late = form.may_be_late() ? batch.late : rows;
  const StoredSample of_all{has_one_size_ ? form.most_bytes_to_device() : 0};
  for (std::size_t i = 0; i < rows; ++i) {
    constexpr std::size_t kAhead = 16;
    if (resident_ && i + kAhead < rows)
      resident_->expect(resident_key(batch.indices.samples[i + kAhead], part));
    const std::uint64_t sample = batch.indices.samples[i];
    const StoredSample& stored = located_.empty() ? of_all : located_[part * rows + i];
    const std::uint64_t size = stored.size_bytes;
    if (!located_.empty()) batch.files.push_back(stored.file);
    if (!batch.is_file.empty()) batch.unindexed.push_back(stored.is_file ? 1 : 0);
    batch.sizes.push_back(size);
    if (i >= late) {
      batch.sources.push_back(nullptr);
      continue;
    }
    const std::byte* source = resident_ ? resident_->find(resident_key(sample, part), size) : nullptr;
    if (source == nullptr) {
      std::uint64_t& last_placed = last_placed_[slot.locations[i].shard];
      FetchItem item{sample,        part,    slot.locations[i],      target,
                     size,          fetched, last_placed != placed_, stored.mapped,
                     stored.is_file};
      last_placed = placed_;
      if (resident_)
        if (std::byte* const place = resident_->add(resident_key(sample, part), size)) item.target = place;
      source = item.target;
      slot.fetch.push_back(item);
      fetched += size;
    } else if (stored.is_file) {
      batch.unindexed.back() = 0;  // it was made for an earlier batch
    }
    if (target != nullptr) target += size;
    batch.sources.push_back(source);
  }
}

void Placement::finish(Slot& slot) {
  PlacedBatch& batch = batches_[slot.number];
  batch.draws.finish();
  std::swap(slot.indices, batch.indices);
  slot.shapes = batch.shapes;
  slot.delivered.clear();
  slot.tokens.clear();
  for (const BatchView& view : batch.views) {
    slot.delivered.push_back(view.spec);
    slot.tokens.push_back(view.tokens);
  }
}

void Placement::forget(const Slot& slot) noexcept {
  if (!resident_) return;
  for (const FetchItem& item : slot.fetch) resident_->forget(resident_key(item.sample, item.part));
}

}  // namespace shard
