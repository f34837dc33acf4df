// BatchMaker: makes one batch in one slot, in two steps, so that the host's part of several batches overlaps.
//
//   begin   Placement decides which samples, and where each comes from and goes to; the transport starts the
//           host's part (reads, copies, decoding)
//   end     the transport queues the copies, and ComputeQueue, in a compute stream, columns, transform and
//           ready_event
//
// It joins these three, and waits for what they need: shards, consumers, the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/thread_pool.hpp"
#include "engine/compute_queue.hpp"
#include "engine/mailbox.hpp"
#include "engine/placement.hpp"
#include "engine/verified_heads.hpp"
#include "prefetch/images_ahead.hpp"
#include "prefetch/shard_fetcher.hpp"
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
  // The first of so many neighbours that are made as one. end() must be called for slots in the order of
  // begin(). Errors name shard and sample.
  void begin(Slot& slot, std::uint64_t epoch, std::uint64_t index, std::size_t batches, bool verify);
  void end(Slot& slot);
  // After end(): the batch is right only if refuse_files() returns false, once its ready_event is over.
  bool needs_a_look(const Slot& slot) const;
  // Whether the device could not decode some of its files. If so, make_again() makes it again, with other
  // ways for those; all batches that were begun must be ended.
  bool refuse_files(const Slot& slot);
  void make_again(Slot& slot);
  // After begin() failed, and abandon(): begins with fewer batches.
  void begin_again(Slot& slot);
  // After begin() or end() failed: the samples that the batch was fetching do not count as being on the
  // device.
  void abandon(const Slot& slot) noexcept;

  const Transport& transport() const noexcept { return *transport_; }
  // What it counted itself, beside the transport.
  const LoaderStats& stats() const noexcept { return stats_; }

  // Which transport, and why. From any thread.
  TransportKind kind() const noexcept {
    return placement_.keeps_resident() ? TransportKind::resident : transport_->kind();
  }
  std::string reason() const;
  // Of whole shards of a server, and of images that are not converted. From any thread.
  LoaderStats arrivals() const;

 private:
  void prepare_slots(Ring& ring);
  void make_resident();
  void wait_for_last_use(const Slot& slot);
  void wait_for_shards(const Slot& slot);
  void wait_for_images(Slot& slot);
  void begin(Slot& slot);
  void wait_copied(const Slot& slot);
  std::uint64_t frames_of(const Slot& slot, const PlacedBatch& batch, std::size_t part) const;
  void wait_released(Slot& slot);

  const LoaderSetup& setup_;
  const Mailbox& mailbox_;
  LoaderStats stats_;

  // Declared before the streams and the pool, whose work reads and writes them:
  // so they are destroyed after those.
  std::optional<ShardFetcher> fetcher_;  // of a data set on servers, if whole shards are fetched
  Placement placement_;
  VerifiedHeads heads_;
  std::unique_ptr<Transport> transport_;
  std::string reason_;
  // One stream for all copies of the copy engine. Two streams that alternate were slower (batches of 32:
  // 0.92 of the link, 0.94 with one). Two if kernels copy: the next batch's kernel begins while the last
  // blocks of this one end.
  std::vector<std::unique_ptr<Stream>> copy_streams_;
  ThreadPool pool_;                    // its threads may queue copies
  std::optional<ImagesAhead> images_;  // of a data set that is not converted
  std::unique_ptr<ComputeQueue> queue_;
};

}  // namespace shard
