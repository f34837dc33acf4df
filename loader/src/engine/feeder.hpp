// Feeder: one thread that keeps the ring full.
//
//   mailbox ──run──▶ thread: acquire ──▶ BatchMaker::begin ──▶ BatchMaker::end ──▶ push ──▶ ring
//
// Loader and feeder share the ring and the mailbox. For stats() the feeder keeps one struct under a mutex.
// All other members are used by its thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/batch_maker.hpp"
#include "engine/mailbox.hpp"
#include "setup/loader_setup.hpp"
#include "slot/ring.hpp"

namespace shard {

class Feeder {
 public:
  // Allocates what the slots of the ring and the transport need. All of them must outlive the feeder. Errors:
  // resource, not_found, corrupt, io, unsupported (the transport).
  // `first_epoch`: that of the loader, if one has started.
  Feeder(const LoaderSetup& setup, Ring& ring, Mailbox& mailbox, std::optional<std::uint64_t> first_epoch);
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;
  // Stops the run and joins the thread.
  ~Feeder();

  // The feeder's part of the statistics: transport, reason, bytes and memory; storage, link and consumer
  // seconds. From any thread.
  LoaderStats stats() const;

 private:
  void feed();
  bool feed_epoch(std::uint64_t epoch, std::uint64_t first_batch);
  void begin(Slot& slot, std::uint64_t epoch);
  void end_first();
  void end_unread(Slot& slot);
  void push(Slot& slot);
  void fail(Slot& slot);
  template <class Make>
  void make_fewer(Slot& slot, const Make& make);
  void settle_done();
  void settle_first();
  bool verifies(std::uint64_t epoch) const noexcept;
  Slot* acquire();
  void publish();

  const LoaderSetup& setup_;
  Ring& ring_;
  Mailbox& mailbox_;
  BatchMaker maker_;
  bool warm_ = false;  // a batch was made
  // Of the epoch that is made.
  std::uint64_t next_ = 0;     // the batch that is begun next
  std::uint64_t batches_ = 0;  // there are no more to begin
  bool failed_ = false;
  // The error behind the batches of a slot, by Slot::number: it is in the slot once they are made.
  std::vector<std::exception_ptr> errors_;
  std::deque<Slot*> begun_;                   // in order
  std::deque<Slot*> unsettled_;               // ended; the device may yet refuse some of their samples
  std::optional<std::uint64_t> first_epoch_;  // the first one that was requested: for Verify::first_epoch
  double slot_wait_seconds_ = 0;              // for a free slot

  struct Published {
    mutable std::mutex mutex;
    LoaderStats stats;
  };
  Published published_;

  std::thread thread_;  // last: it uses the others
};

}  // namespace shard
