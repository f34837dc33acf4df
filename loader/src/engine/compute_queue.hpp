// ComputeQueue: queues what makes a batch out of its stored samples, in a compute stream: columns, transforms
// and further fields.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/field_maker.hpp"
#include "engine/frame_decoder.hpp"
#include "engine/placement.hpp"
#include "fields/delivered_columns.hpp"
#include "setup/loader_setup.hpp"
#include "transport/memory_plan.hpp"

namespace shard {

// The feeder's thread only.
class ComputeQueue {
 public:
  // Allocates `memory` and `late`. The threads of the pool stage late samples. Errors: resource.
  ComputeQueue(const LoaderSetup& setup, const ComputeMemory& memory, const LateMemory& late,
               ThreadPool& pool);
  ComputeQueue(const ComputeQueue&) = delete;
  ComputeQueue& operator=(const ComputeQueue&) = delete;

  // Writes the columns, and queues the rest after slot.released and slot.copied_event. Records
  // slot.ready_event. `in_place`: Transport::sources(). Errors: corrupt, io (of columns).
  void add(Slot& slot, const PlacedBatch& batch, std::span<const std::byte* const> in_place);
  // Waits until what was queued for the last batch is over. Errors: those of its reads.
  void wait();

 private:
  // Where samples are decoded: ComputeMemory.
  struct Room {
    std::unique_ptr<Block> memory;  // null: not needed
    Event used;                     // what reads it; not kept where each lane has a room
  };
  // A stream for transforms, and the memory that they share.
  struct Lane {
    Room* room = nullptr;  // of the last batch
    std::unique_ptr<Block> augment;
    std::unique_ptr<FieldMaker> fields;
    std::unique_ptr<Stream> stream;  // destroyed first
  };

  void write_columns(Slot& slot, std::span<const DrawnSteps> views);
  // What of a batch may be late (StoredForm::may_be_late()). `sources`: as in Transport::sources().
  void queue_transforms(const Slot& slot, const PlacedBatch& batch, std::span<const std::byte* const> sources,
                        std::span<const DrawnSteps> views, Lane& lane);
  // Of each field whose samples may be late (`late`), or of the others: rows [first, first + rows).
  void queue_fields(const Slot& slot, const PlacedBatch& batch, std::span<const std::byte* const> sources,
                    std::span<const DrawnSteps> views, bool late, std::size_t first, std::size_t rows,
                    Lane& lane);
  // Rows [first, first + rows) of the images. `images`: of the whole batch.
  void queue_rows(const Slot& slot, const PlacedBatch& batch, const FieldMaker::Samples& images,
                  std::size_t first, std::size_t rows, Lane& lane);
  void queue_views(const Slot& slot, const PlacedBatch& batch, const FieldMaker::Samples& images,
                   std::size_t first, std::size_t rows, bool decoded, Lane& lane);
  // Queues the decoding of as many of these rows as there is room for, and returns their number.
  std::size_t queue_decoder(const Slot& slot, const PlacedBatch& batch, const FieldMaker::Samples& images,
                            std::size_t first, std::size_t rows, Lane& lane);
  void choose_lane();
  void find_boxes(const PlacedBatch& batch, std::size_t first, std::size_t rows);
  // What the samples of a batch wait for: its copies and, if some are resident, those of earlier batches.
  void find_copies(const Slot& slot);
  std::span<const std::byte* const> with_late(const PlacedBatch& batch,
                                              std::span<const std::byte* const> in_place);
  std::size_t group_end(const PlacedBatch& batch, std::size_t first) const;
  std::size_t queue_late(const Slot& slot, const PlacedBatch& batch, std::size_t first,
                         std::span<const DrawnSteps> views, Lane& lane);
  void queue_gather(const Slot& slot, const PlacedBatch& batch, Lane& lane);

  const LoaderSetup& setup_;
  ThreadPool& pool_;
  // Declared before the streams, whose work reads and writes them.
  LateMemory late_;
  struct LateGroup {
    std::unique_ptr<Block> host;  // pinned; null: there is always room
    std::unique_ptr<Block> device;
    Event made;  // what reads it
  };
  std::array<LateGroup, kLateGroups> late_groups_;
  std::size_t late_group_ = 0;                  // the next one
  std::vector<FetchItem> late_items_;           // scratch
  std::vector<const std::byte*> late_sources_;  // scratch
  std::vector<CopyItem> late_copies_;           // scratch
  std::vector<Room> rooms_;                     // batches take turns
  std::vector<Lane> lanes_;                     // likewise
  std::size_t lane_ = 0;                        // of the last batch
  FrameDecoder decoder_;                        // its work reads and writes what lanes have
  std::size_t room_ = 0;                        // of the last batch
  std::array<Event, 2> last_copied_;            // of the last batches with copies, which two streams make
  std::vector<Event> copied_;                   // find_copies(); of late rows, their copy
  std::vector<Event> after_;                    // scratch

  std::vector<TransformWork> transforms_;  // of the last batch, by view
  std::vector<const std::byte*> decoded_;  // scratch: where samples are that are decoded once for all views
  std::vector<SampleSize> shapes_;         // scratch: of frames that are decoded
  std::vector<SampleBox> boxes_;           // scratch: what of them is decoded
  std::vector<const std::byte*> sources_;  // scratch
  std::vector<CopyItem> gathered_;         // scratch
  ColumnGather columns_;
};

}  // namespace shard
