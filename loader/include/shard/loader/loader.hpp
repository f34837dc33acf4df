// Loader: shuffled, transformed batches of a data set on a device.
//
//   for (Batch& batch : loader.epoch(0)) {
//     batch.wait_on(stream);             // a StreamRef: a Stream, or cuda_stream(s); batch.wait(): the host
//     train(batch.images(), stream);     // queued in `stream`
//   }                                    // its memory is used again after the work in `stream`
//
// A Loader owns its threads, pinned memory and device memory; all stay inside what the options state. It may
// be destroyed while batches are alive: their memory lives as long as they do. Not for use after fork():
// calls in a child are refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/order.hpp"
#include "shard/loader/stream.hpp"
#include "shard/loader/transform.hpp"

struct DLManagedTensorVersioned;

namespace shard {

enum class TransportKind : std::uint8_t {
  automatic,  // mapped where the platform allows and the budget suffices, else staged; direct when the data
              // exceed memory
  mapped,     // shards registered in place, ahead on a thread; the copy engine gathers the samples. Those of
              // shards not registered yet are staged. Host device: samples are read where they lie
  staged,     // copy threads fill a pinned ring (zstd frames are decompressed into it), one copy a batch
  direct,     // io_uring with O_DIRECT into the pinned ring
  resident,   // samples stay in device memory after their first upload, as far as resident_bytes reaches
};
std::string_view to_string(TransportKind kind) noexcept;

enum class Verify : std::uint8_t { never, first_epoch, always };

struct LoaderOptions {
  OrderOptions order;
  TransformOptions transform;
  TransportKind transport = TransportKind::automatic;
  Verify verify = Verify::never;
  std::uint32_t prefetch = 4;  // batches ahead of the consumer, 1 to 64; slots = prefetch + 1 lent
  std::uint32_t threads = 0;   // copy and decompression threads; 0: min(8, cores)
  std::uint64_t registered_bytes =
      0;  // mapped: budget of registered memory; 0: half of what cgroup and MemAvailable allow. A global
          // shuffle needs all shards in it; of a windowed or sequential order, what does not fit is staged
  // staged, direct: bound of the pinned ring. mapped: the same for the memory in which samples are staged
  // until all shards are registered; where the ring exceeds it, batches wait for the registration of their
  // shards.
  std::uint64_t pinned_bytes = std::uint64_t{1} << 30U;
  // resident: the most device memory for samples; 0: half of what is free beside the ring. No more is taken
  // than the samples need that this rank comes to: its part in a sequential order, else the data set.
  std::uint64_t resident_bytes = 0;
  std::uint64_t readahead_bytes = std::uint64_t{256} << 20U;  // direct: requests in flight
};

struct LoaderStats {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;      // stored bytes moved to the device (or served from it, resident)
  double storage_seconds = 0;   // waiting for pages, reads, decompression
  double link_seconds = 0;      // loader waiting for copies and transforms of earlier batches
  double consumer_seconds = 0;  // loader waiting for a batch to be given back
  double starved_seconds = 0;   // consumer waiting in next()
  TransportKind transport = TransportKind::automatic;
  std::string reason;  // why this transport; which ones were refused and by what; mapped: how many shards
                       // could not be registered and why
  std::uint64_t registered_bytes = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t device_bytes = 0;
};

struct ColumnView {
  std::string name;
  DType dtype = DType::i64;
  std::vector<std::uint64_t> shape;   // [rows of the batch, ...]
  const std::byte* host = nullptr;    // rows of this batch in host memory
  const std::byte* device = nullptr;  // and on the device
};

class LoaderImpl;

// A batch, lent. Move-only. It remembers each stream that it was handed to by wait_on(), remember() or
// to_dlpack_...(stream). When it is released or destroyed, its memory, on the device and on the host, is used
// again after the work that is in these streams at that moment; where it was handed to none, after its own
// copies. So it may go at any time, also by `break` or an exception. The host's own use (after wait()) and
// streams that it was not told of must have ended by then.
//
// When a stream cannot be asked when it is done (it captures a CUDA graph, which would read the memory again
// whenever it is replayed; it belongs to another GPU; the device is lost), the memory is not used again:
// release() throws why, and so does the loader's next call and each one after it.
//
// Thread safety: const members may be called by several threads at once. A batch that was moved from has size
// 0 and no images; its other members throw invalid_argument, release() does nothing.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  // Rows: batch_size, or fewer in the last batch with tail short, also 0. With tail pad the last ones may be
  // padding (mask 0).
  std::uint64_t size() const noexcept;
  std::uint64_t epoch() const noexcept;
  std::uint64_t index() const noexcept;  // of the rank's batches in the epoch
  const SampleSpec& spec() const;        // of a delivered sample
  const std::byte* images()
      const noexcept;  // device memory: [batch, channel, row, column] or [batch, row, column, channel]
  const ColumnView& column(std::string_view name) const;  // throws not_found
  std::span<const std::int64_t> labels()
      const;  // host memory; throws unsupported when labels are not I64 [N]
  std::span<const std::uint64_t> ids() const noexcept;  // data set indices, host memory
  std::span<const std::uint8_t> mask() const noexcept;  // 1: a real sample
  // The same as columns, which are on the device too, like labels: int64 [rows] and bool [rows]. They come
  // with the labels, in one copy. Throw invalid_argument after release().
  const ColumnView& ids_column() const;
  const ColumnView& mask_column() const;

  // The host waits for the batch's bytes. Errors: io, corrupt (naming shard and sample).
  void wait() const;
  // True: wait() would not wait; false: `timeout` passed before.
  bool wait_ready(std::chrono::milliseconds timeout) const;
  // Work queued later in `stream` comes after the batch's bytes; the host does not wait (but on the host
  // device it does). Remembers the
  // stream. Errors: invalid_argument (a stream of another kind of device; one that captures a CUDA graph),
  // io.
  void wait_on(StreamRef stream) const;
  // Remembers a stream that is ordered after the batch already, for instance by an event of yours.
  void remember(StreamRef stream) const;
  // Gives the memory back before the batch ends; DLPack tensors made from it keep it for as long as they
  // live. Idempotent. Afterwards the batch knows its size, epoch, index and spec, but holds nothing: images()
  // is null, ids() and mask() are empty, the other members throw invalid_argument. Errors: see above.
  void release();

  // DLPack 1.0 (read-only flag set). The tensor shares the memory until its deleter runs, from any thread;
  // the last one of batch and tensors to go gives it back, as above. `consumer`: wait_on(consumer) first;
  // without it the host waits, unless wait() or wait_on() was called before.
  DLManagedTensorVersioned* to_dlpack_images();
  DLManagedTensorVersioned* to_dlpack_images(StreamRef consumer);
  DLManagedTensorVersioned* to_dlpack_column(std::string_view name);
  DLManagedTensorVersioned* to_dlpack_column(std::string_view name, StreamRef consumer);
  DLManagedTensorVersioned* to_dlpack_ids();  // int64 [rows]
  DLManagedTensorVersioned* to_dlpack_ids(StreamRef consumer);
  DLManagedTensorVersioned* to_dlpack_mask();  // bool [rows]
  DLManagedTensorVersioned* to_dlpack_mask(StreamRef consumer);

 private:
  friend class Loader;
  struct Lease;
  explicit Batch(std::shared_ptr<Lease> lease) noexcept;
  DLManagedTensorVersioned* to_dlpack(const ColumnView& view);
  Lease& lease() const;
  std::shared_ptr<Lease> lease_;
};

class Loader {
 public:
  // Errors: invalid_argument (naming option and bounds), resource, not_found, corrupt, io.
  Loader(std::shared_ptr<const Dataset> dataset, std::shared_ptr<Device> device, LoaderOptions options);
  Loader(Loader&&) noexcept;
  // Stops and joins within a second, and frees all memory but that of the batches that are held, which stay
  // valid.
  ~Loader();

  const LoaderOptions& options() const noexcept;
  SampleSpec delivered() const noexcept;
  std::uint64_t batches_per_epoch() const noexcept;

  // Drops what is prefetched; waits until the loader's thread is done with the batch that it is at.
  void start_epoch(std::uint64_t epoch);
  // The next batch, or nothing at the end of the epoch. Throws what failed on a worker, naming shard and
  // sample, and the same again until start_epoch() or resume(); Error(cancelled) after cancel(). With
  // every slot lent out, and nothing to wait for, it throws resource.
  std::optional<Batch> next();
  // True: next() would not wait for the loader; false: `timeout` passed before. For callers that have to look
  // at something else from time to time, as an interpreter at its signals. The wait counts as starvation.
  bool wait_ready(std::chrono::milliseconds timeout);
  // From any thread, at any time: next() throws cancelled from now on, also one that waits, until the next
  // call of start_epoch() or resume(). Of a cancel() and a start_epoch() at the same time the later one
  // holds: a cancel() that comes once start_epoch() has begun cancels the new epoch, also before it has
  // returned.
  void cancel() noexcept;

  LoaderState state() const;
  // Throws invalid_argument, saying what differs, when the state is of another data set, seed, global batch
  // or order (mode, window, tail, partition).
  void resume(const LoaderState& state);
  LoaderStats stats() const;

  // for (Batch& batch : loader.epoch(e)): the rest of the epoch when resumed inside it, nothing when resumed
  // at its end (once: asked again, it is a new run of the epoch).
  class Epoch;
  Epoch epoch(std::uint64_t epoch);

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  Loader& operator=(Loader&&) = delete;

 private:
  std::unique_ptr<LoaderImpl> impl_;
};

// A single-pass range over the rest of an epoch; the batch that is looked at is released when the next one is
// asked for, unless it was moved out.
class Loader::Epoch {
 public:
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(Epoch& epoch) : epoch_(&epoch) { ++*this; }
    Batch& operator*() const { return *epoch_->batch_; }
    Iterator& operator++() {
      epoch_->batch_.reset();
      epoch_->batch_ = epoch_->loader_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !epoch_->batch_; }

   private:
    Epoch* epoch_;
  };

  explicit Epoch(Loader& loader) : loader_(&loader) {}
  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  Loader* loader_;
  std::optional<Batch> batch_;
};

}  // namespace shard
