// Placement: which samples each batch has, what is drawn for them, and where each one comes from and goes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/system/thread_pool.hpp"
#include "engine/view_draws.hpp"
#include "prefetch/resident.hpp"
#include "setup/loader_setup.hpp"
#include "slot/slot.hpp"
#include "transport/memory_plan.hpp"

namespace shard {

// What was decided about the batch in a slot.
struct PlacedBatch {
  // Device: the batch before the transform. Null if the transform reads no copy.
  std::unique_ptr<Block> raw;
  // A copy, because the consumer's work may still read Slot::indices of the batch before.
  BatchIndices indices;
  ViewDraws draws;
  // Where each sample is on the device: those of the images, then those of each further field.
  // Null: the device reads it where it is mapped.
  std::vector<const std::byte*> sources;
  // The bytes of each of them that go to the device.
  std::vector<std::uint64_t> sizes;
  // StoredSample::file of each of them. Empty: all have one size.
  std::vector<jpeg::FrameFile> files;
  // By row: the image is a file that is read when it is staged. Empty: none is.
  std::vector<std::uint8_t> is_file;
  // StoredFrames::unindexed. Empty: all have an index.
  std::vector<std::uint8_t> unindexed;
  // Samples of any size: rows and columns of each.
  std::vector<SampleSize> shapes;
  std::vector<BatchView> views;
  // From this row on there was no room for samples (StoredForm::may_be_late()): they have no source yet, and
  // are made after the others (LateMemory).
  std::size_t late = 0;
};

// It owns the resident samples. The feeder's thread only, except keeps_resident(). It must outlive the pool
// and all streams, whose work reads and writes what it owns.
class Placement {
 public:
  Placement(const LoaderSetup& setup, std::size_t slots);
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  // Allocates what a slot needs beside its own memory. Errors: resource.
  void prepare(const Slot& slot, const SlotMemory& memory);
  // Samples of all later batches stay on the device, as far as they fit. Errors: resource.
  void keep_resident(const ResidentMemory& memory);
  bool keeps_resident() const noexcept { return resident_.has_value(); }

  // Sets the samples of the slot's batches: where they are stored, and what is mixed. Starts to draw what is
  // drawn for the views, on the threads of the pool.
  void choose(Slot& slot, ThreadPool& pool);
  // After choose(): another sample takes the place of a row's.
  void replace(Slot& slot, std::size_t row, std::uint64_t sample);
  // Which rows are files (ImagesAhead).
  void set_files(const Slot& slot, std::vector<std::uint8_t> is_file);
  // Whether a sample of the data set that was made is on the device with all its parts.
  bool is_resident(std::uint64_t sample) const;
  // After choose(): sets slot.fetch, the samples that are not on the device, and where each of them goes.
  // Errors name shard and sample.
  void place(Slot& slot, ThreadPool& pool);
  // Once nobody reads the slot's last batch: slot.indices are those of this one, and all is drawn.
  void finish(Slot& slot);
  const PlacedBatch& batch(const Slot& slot) const noexcept { return batches_[slot.number]; }
  // Whether some samples of the batch in the slot are files.
  bool has_files(const Slot& slot) const;
  // The device is done with that batch: those files of it that it could not decode. They do not count as
  // being on the device.
  std::vector<std::uint64_t> take_refused_files(const Slot& slot);
  // The samples in slot.fetch do not count as being on the device.
  void forget(const Slot& slot) noexcept;

 private:
  void order_batches(Slot& slot);
  void draw(Slot& slot, ThreadPool& pool);
  void draw_pairs(Slot& slot) const;
  void open_shards(const Slot& slot, ThreadPool& pool);
  void locate(const Slot& slot, ThreadPool& pool);
  StoredSample locate(const Slot& slot, std::uint32_t part, std::size_t row);
  void place_part(Slot& slot, std::uint32_t part, std::byte* target, std::uint64_t& fetched);
  void find_shapes(const Slot& slot, ThreadPool& pool);
  void check_shapes(const Slot& slot, std::size_t field) const;
  void choose_late(const Slot& slot);
  std::uint64_t resident_key(std::uint64_t sample, std::uint32_t part) const noexcept {
    return sample * setup_.forms.size() + part;
  }

  const LoaderSetup& setup_;
  std::vector<PlacedBatch> batches_;  // by slot
  BatchIndices one_;                  // scratch: of several batches in a slot
  // Scratch: of the batch that is placed, by part and row. Empty: all have one size.
  std::vector<StoredSample> located_;
  bool has_one_size_ = false;          // of each part
  std::vector<std::uint8_t> is_open_;  // by shard: Dataset::opened() has it
  bool may_be_late_ = false;
  std::optional<ResidentSamples> resident_;
  // By resident_key(): of samples that were made, which are not made again to look at them.
  std::unordered_map<std::uint64_t, StoredSample> made_;
  std::uint64_t placed_ = 0;                // batches whose samples were placed
  std::vector<std::uint64_t> last_placed_;  // by shard: the last such batch that reads it
};

}  // namespace shard
