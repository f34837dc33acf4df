// BatchMaker: makes one batch in one slot, in two steps, so that the host's part of several batches overlaps.
//
//   begin   decides which samples, and where each comes from and goes to; the transport starts the host's
//           part (reads, copies, decoding)
//   end     queues the copies and then, in a compute stream, columns, transform and ready_event
//
// It owns the transport, the streams, the pool and the resident samples.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/system/thread_pool.hpp"
#include "engine/field_maker.hpp"
#include "engine/mailbox.hpp"
#include "engine/view_draws.hpp"
#include "fields/delivered_columns.hpp"
#include "prefetch/resident.hpp"
#include "prefetch/shard_filler.hpp"
#include "setup/loader_setup.hpp"
#include "slot/ring.hpp"
#include "transport/transport.hpp"

namespace shard {

// Used by the feeder's thread only, except kind() and reason().
class BatchMaker {
 public:
  // Allocates what the ring's slots need. Later waits end when the mailbox has a stop. Errors: those of the
  // transport; resource.
  BatchMaker(const LoaderSetup& setup, Ring& ring, const Mailbox& mailbox);
  BatchMaker(const BatchMaker&) = delete;
  BatchMaker& operator=(const BatchMaker&) = delete;

  // Whether begin() for this batch will not wait for shards that need the room of batches that are not ended.
  bool ready(std::uint64_t epoch, std::uint64_t index);
  // end() must be called for slots in the order of begin(). Errors name shard and sample.
  void begin(Slot& slot, std::uint64_t epoch, std::uint64_t index, bool verify);
  void end(Slot& slot);
  // After begin() or end() failed: the samples that the batch was bringing do not count as being on the
  // device.
  void abandon(const Slot& slot) noexcept;

  const Transport& transport() const noexcept { return *transport_; }
  // What it counted itself, beside the transport.
  const LoaderStats& stats() const noexcept { return stats_; }

  // Which transport, and why. From any thread.
  TransportKind kind() const noexcept { return resident_ ? TransportKind::resident : transport_->kind(); }
  std::string reason() const;
  // Of whole shards of a server. From any thread.
  LoaderStats arrivals() const { return filler_ ? filler_->stats() : LoaderStats(); }

 private:
  // What this class keeps about the batch in a slot.
  struct Work {
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
  };

  // A stream for transforms, and the memory that they share: ComputeMemory.
  struct Lane {
    std::unique_ptr<Block> decoded;
    std::unique_ptr<Block> augment;
    std::unique_ptr<FieldMaker> fields;
    std::unique_ptr<Stream> stream;  // destroyed first
  };

  void prepare_lanes();
  void prepare_slots(Ring& ring);
  void prepare_columns(Slot& slot, const SlotMemory& memory);
  void make_resident();
  void wait_for_last_use(const Slot& slot);
  void draw_pairs(Slot& slot);
  void open_shards(const Slot& slot);
  void wait_for_shards(const Slot& slot);
  void place_samples(Slot& slot);
  void place_part(Slot& slot, std::uint32_t part, std::byte* target, std::uint64_t& fetched);
  std::uint64_t resident_key(std::uint64_t sample, std::uint32_t part) const noexcept {
    return sample * setup_.forms.size() + part;
  }
  std::span<const std::byte* const> sources_of(const Slot& slot, std::size_t part) const;
  std::span<const std::uint64_t> sizes_of(const Slot& slot, std::size_t part) const;
  void wait_copied(const Slot& slot);
  void wait_released(Slot& slot);
  void write_columns(Slot& slot);
  void queue_transforms(Slot& slot, Lane& lane);
  void queue_fields(Slot& slot, Lane& lane);
  void queue_gather(Slot& slot, Lane& lane);

  const LoaderSetup& setup_;
  const Mailbox& mailbox_;
  LoaderStats stats_;

  // Declared before the streams and the pool, whose work reads and writes them:
  // so they are destroyed after those.
  std::optional<ShardFiller> filler_;  // of a data set on servers, if shards are brought here
  std::vector<Work> work_;             // by slot
  std::optional<ResidentSamples> resident_;
  std::unique_ptr<Transport> transport_;
  std::string reason_;
  std::unique_ptr<ThreadPool> pool_;
  // One stream for all copies of the copy engine. Two streams that alternate were slower (batches of 32:
  // 0.92 of the link, 0.94 with one). Two if kernels copy: the next batch's kernel begins while the last
  // blocks of this one end.
  std::vector<std::unique_ptr<Stream>> copy_streams_;
  std::vector<Lane> lanes_;  // batches take turns
  std::size_t lane_ = 0;     // of the batch in end()

  std::vector<TransformWork> transforms_;   // of the batch in end(), by view
  std::vector<const std::byte*> decoded_;   // scratch: where samples are that are decoded once for all views
  std::vector<CopyItem> gathered_;          // scratch
  std::uint64_t placed_ = 0;                // batches whose samples were placed
  std::vector<std::uint64_t> last_placed_;  // by shard: the last such batch that reads it
  ColumnGather columns_;
};

}  // namespace shard
