// Transport: how the stored samples of a batch reach the device. One per loader, called by its feeder thread
// only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>

#include "base/system_memory.hpp"
#include "base/thread_pool.hpp"
#include "memory_plan.hpp"
#include "shard/error.hpp"
#include "shard/loader/direct_reads.hpp"
#include "shard/loader/loader.hpp"
#include "slot.hpp"
#include "transport/choose.hpp"

namespace shard {

struct TransportContext {
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<Device> device;
  const LoaderOptions* options = nullptr;
  const Order* order = nullptr;
  Stream* copy_stream = nullptr;
  ThreadPool* pool = nullptr;  // copy, decompression and verification
  std::uint64_t cache_bytes = last_cache_bytes();
  // The epoch is to end: whoever waits for long in begin() or end() asks every few milliseconds, and throws
  // cancelled. From any thread.
  std::function<bool()> stopping{};
  // For tests of direct: what takes io_uring's place, and an alignment that reads keep to at least.
  std::function<std::unique_ptr<ReadQueue>(unsigned entries)> make_queue{};
  std::uint32_t least_alignment = 1;
};

struct TransportUse {
  std::uint64_t registered_bytes = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t device_bytes = 0;
  std::uint64_t storage_nanoseconds = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual TransportKind kind() const noexcept = 0;
  // Adds what a slot needs beside its images. Errors: resource.
  virtual void prepare(Slot& slot) = 0;
  // How many slots it wants begun and not ended, 1 to the ring's: the batches that its reads overlap.
  virtual std::size_t depth() const noexcept { return 2; }
  // False: begin() would wait for the device.
  virtual bool has_room() const { return true; }
  // Starts the host's part for slot.fetch; slots end in the order in which they began. Errors name shard and
  // sample.
  virtual void begin(Slot& slot) = 0;
  // Ends the host's part. By now the copies of the samples are queued on the copy stream, behind
  // slot.released, and slot.copied_event is recorded; or slot.sources is filled where the targets are
  // null (only where reads_in_place()). Errors name shard and sample.
  virtual void end(Slot& slot) = 0;
  // Waits so long for the host's part at most; true: it is over, and end() does not wait.
  virtual bool wait(const Slot&, std::chrono::microseconds) const { return true; }
  // In place of begin() and end() for a batch of which nothing is to be brought.
  virtual void skip(Slot&) {}
  virtual bool reads_in_place() const noexcept { return false; }
  virtual TransportUse use() const noexcept = 0;
  // What did not go as the transport is meant to, and what was done instead; empty: nothing. From any thread.
  virtual std::string remark() const { return {}; }
};

// Throws Error when the platform or the options do not allow it (the message is the reason in stats()).
std::unique_ptr<Transport> make_mapped(const TransportContext& context);
std::unique_ptr<Transport> make_staged(const TransportContext& context);
// detail: how it reads.
std::unique_ptr<Transport> make_direct(const TransportContext& context, std::string& detail);
// automatic: chooses and says why (choose.hpp).
std::unique_ptr<Transport> make_transport(const TransportContext& context, std::string& reason);

// Compares what stands under the path of a shard with the file that is mapped, so that one that was cut or
// replaced is named before it is read. Errors: corrupt, io.
void check_alive(const ShardReader& shard);
// In a catch block around a wait for a batch's bytes: throws what failed again, with the shard and the sample
// whose bytes could not be read; of another failure it says in addition which of the open shards has changed,
// if one has.
[[noreturn]] void rethrow_named(const Dataset& dataset);
// XXH3 of one sample against its checksum. `bytes`: the sample or, codec packed, its frame. Throws corrupt
// naming shard and sample.
void verify_stored(const ShardReader& shard, std::uint64_t sample, std::span<const std::byte> bytes);

// The same, read where it is mapped.
void verify_mapped(const ShardReader& shard, std::uint64_t sample);
// Brings a stored sample to `target` in pinned memory (item.size_bytes): as it is stored, or decompressed
// where the device does not do that; `verify`: holds it against its checksum; `cached`: by stores that stay
// in the cache. The first item of its shard in a batch checks the size of the shard's file. Errors name shard
// and sample.
void stage_row(const Dataset& dataset, const FetchItem& item, std::byte* target, bool verify,
               bool cached = false);
// Waits so long for the pool's threads at most; true: they are done with the batch.
inline bool wait_filled(const Slot& slot, std::chrono::microseconds time) {
  return !slot.filled.valid() || slot.filled.wait_for(time) == std::future_status::ready;
}
// Where the sample is mapped, as it is stored.
inline std::span<const std::byte> frame_of(const Dataset& dataset, const FetchItem& item) {
  if (item.frame != nullptr) return {item.frame, static_cast<std::size_t>(item.size_bytes)};
  return dataset.shard(item.at.shard).frame(item.at.sample);
}
// Queues slot.copies behind the slot's release, and records slot.copied_event.
void queue_copies(Stream& stream, Slot& slot);
// Queues the copies of slot.fetch's samples from where source(row) has them in pinned memory, behind the
// slot's release, and records slot.copied_event. Rows that follow each other on both sides are one copy.
void copy_rows(Stream& stream, Slot& slot, const std::function<const std::byte*(std::size_t row)>& source);
// Codec zstd: samples are decompressed on the way. Others reach the device as they are stored.
inline bool decompressed_on_the_way(const Dataset& dataset) {
  return dataset.info().codec.kind == Codec::Kind::zstd;
}
// Throws corrupt naming shard and sample when the device found that a frame of the slot's batch is none; the
// slot's ready_event has been waited for.
void check_frames(const Dataset& dataset, const Slot& slot);
// Throws `error` with the shard and the sample that it is about; when the shard's file has another size than
// when it was opened, that is the reason, and the code is corrupt.
[[noreturn]] void rethrow_for(const ShardReader& shard, std::uint64_t sample, const Error& error);

}  // namespace shard
