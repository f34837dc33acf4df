// Transport: how the stored samples of a batch reach the device. Each loader has one, which only its feeder
// thread calls. A transport keeps what it needs of each slot's batch itself, by Slot::number.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/system/system_memory.hpp"
#include "base/system/thread_pool.hpp"
#include "codec/stored_form.hpp"
#include "shard/error.hpp"
#include "shard/loader/direct_reads.hpp"
#include "shard/loader/loader.hpp"
#include "slot/slot.hpp"
#include "transport/choose.hpp"
#include "transport/memory_plan.hpp"

namespace shard {

struct TransportContext {
  const Dataset* dataset = nullptr;
  // How samples are stored, by FetchItem::part.
  StoredForms forms;
  std::shared_ptr<Device> device;
  const LoaderOptions* options = nullptr;
  const Order* order = nullptr;
  Stream* copy_stream = nullptr;
  ThreadPool* pool = nullptr;  // copy, decompression and verification
  // Where it is useful that copies of two batches overlap, a transport may queue every second
  // batch here. Null: not.
  Stream* other_copy_stream = nullptr;
  std::uint64_t cache_bytes = last_cache_bytes();
  // True if the epoch must end. Long waits in begin() and end() call it every few milliseconds, and then
  // throw cancelled. From any thread.
  std::function<bool()> stopping{};
  // For the pool's threads, before each sample. Throws cancelled if the epoch must end.
  void check_wanted() const {
    if (stopping && stopping()) throw Error(ErrorCode::cancelled, "stopped while samples were staged");
  }
  // For tests of direct: a replacement for io_uring, and a least alignment of reads.
  std::function<std::unique_ptr<ReadQueue>(unsigned entries)> make_queue{};
  std::uint32_t least_alignment = 1;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual TransportKind kind() const noexcept = 0;
  // Allocates what a slot needs beside its images. Called once for each slot. Errors: resource.
  virtual void prepare(const Slot&) {}
  // How many slots it should have begun and not ended, 1 to the ring's number: the batches whose reads
  // overlap.
  virtual std::size_t depth() const noexcept { return 2; }
  // False: begin() would wait for the device.
  virtual bool has_room() const { return true; }
  // Starts the host's part for slot.fetch. end() is called for slots in the order of begin(). Errors name
  // shard and sample.
  virtual void begin(Slot& slot) = 0;
  // Ends the host's part. When it returns, the copies of the samples are queued on the copy stream, after
  // slot.released, and slot.copied_event is recorded. If the targets are null, sources() returns where the
  // samples are. Errors name shard and sample.
  virtual void end(Slot& slot) = 0;
  // Waits for the host's part, at most as long as given. True: it is over, and end() does not wait.
  virtual bool wait(const Slot&, std::chrono::microseconds) const { return true; }
  // Called instead of begin() and end() if all samples of the batch are on the device already.
  virtual void skip(Slot&) {}
  // After end() or skip() of a slot, if the device reads host memory: where each sample of slot.fetch is.
  virtual std::span<const std::byte* const> sources(const Slot&) const { return {}; }
  // Once ready_event of a slot with files is over. Throws invalid_argument if a file that the device read
  // where it is mapped is not the one that was listed.
  virtual void check_files(const Slot&) const {}
  // registered_bytes, pinned_bytes, storage_seconds.
  virtual LoaderStats stats() const noexcept = 0;
  // What did not work as intended, and what the transport did instead. Empty: all worked. From any thread.
  virtual std::string remark() const { return {}; }
};

// Throws Error when the platform or the options do not allow it (the message is the reason in stats()).
std::unique_ptr<Transport> make_mapped(const TransportContext& context);
std::unique_ptr<Transport> make_staged(const TransportContext& context);
// detail: how it reads.
std::unique_ptr<Transport> make_direct(const TransportContext& context, std::string& detail);
// automatic: chooses and says why (choose.hpp).
std::unique_ptr<Transport> make_transport(const TransportContext& context, std::string& reason);

}  // namespace shard
