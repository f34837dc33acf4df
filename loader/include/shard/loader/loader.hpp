// Loader: shuffled, transformed batches of a data set on a device.
//
//   for (Batch& batch : loader.epoch(0)) {
//     batch.wait_on(stream);             // a Stream or cuda_stream(s); to read on the host: batch.wait()
//     train(batch.images(), stream);     // queued in `stream`
//   }                                    // the memory is reused only after the work in `stream`
//
// A Loader owns its threads, pinned memory and device memory, within the bounds of its options. It may be
// destroyed while batches are alive: their memory lives as long as they do. It cannot be used after fork():
// calls in a child are refused.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "shard/dataset.hpp"
#include "shard/error.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/order.hpp"
#include "shard/loader/stream.hpp"
#include "shard/loader/targets.hpp"
#include "shard/loader/transform.hpp"

struct DLManagedTensorVersioned;

namespace shard {

// How stored samples reach the device (docs/loader.md, "Transports").
enum class TransportKind : std::uint8_t {
  // mapped if the platform and the budget allow it; else direct if the shards exceed memory, else staged.
  automatic,
  // A thread registers the mapped shards ahead, and the copy engine gathers the samples. Samples of shards
  // that are not registered yet are staged. Host device: samples are read in place.
  mapped,
  // Threads copy samples into a pinned ring, or decompress zstd frames into it. One copy per batch.
  staged,
  // io_uring with O_DIRECT reads into the pinned ring.
  direct,
  // Samples stay in device memory after their first upload, up to resident_bytes.
  resident,
};
std::string_view to_string(TransportKind kind) noexcept;

// When samples are compared with their checksums before they are delivered.
enum class Verify : std::uint8_t { never, first_epoch, always };

// How a ragged column is delivered.
struct RaggedOptions {
  // The first rows of each sample, at most this many. 0: as many as any sample has; all shards are then
  // opened when the loader is made. Boxes and the columns along have one limit: stated for one of them it
  // holds for all, and two that differ are refused.
  std::uint64_t max_rows = 0;
  // False: column(NAME) is [batch, max_rows, ...] with zeros after the rows of a sample, and
  // column(NAME_counts), i64 [batch], says how many it has. True: column(NAME) has the rows of all samples,
  // one after the other, and column(NAME_offsets), i64 [batch + 1], says where those of each sample begin.
  bool flat = false;
};

// The layout of views that name none (TransformOptions::layout).
// It belongs to the consumer: a LoaderState does not have it.
enum class UnnamedLayout : std::uint8_t {
  stored,
  // nchw where floats are delivered, else as stored.
  nchw_if_float,
  nchw,
};

// Which samples, and in which order, is what OrderOptions says: batch_size, rank, world_size, order,
// tail, seed, ...
struct LoaderOptions : OrderOptions {
  // What is delivered.
  TransformOptions transform;
  // Further views of each sample in the same batch: views 1 to 63; view 0 is `transform`. Each has
  // its own crop, size, operations, dtype and layout. A sample crosses the link once, and is decoded
  // once, for all of them.
  std::vector<TransformOptions> further_views;
  // Of images; tensors have none.
  UnnamedLayout unnamed_layout = UnnamedLayout::stored;
  // Mixup and cutmix of neighbours, for samples stored as u8 or with codec packed; one view. A batch then has
  // two more columns: `labels_b`, the labels of each row's neighbour, and `share`, f32 [batch], that of the
  // row's own label. batch_size must be even, and tail not short_.
  MixOptions mix;
  // Targets (targets.hpp). Further image fields that are delivered, by name; none by default.
  std::map<std::string, FieldOptions> fields;
  // Ragged columns that have boxes, and columns that have keypoints. If a view moves pixels (crop, flip,
  // geometric operations) or samples are mixed, columns that the data set knows to be boxes or keypoints
  // (known_targets()) are among them by themselves.
  std::map<std::string, BoxOptions> boxes;
  std::map<std::string, KeypointOptions> keypoints;
  // Columns that are delivered as stored, whatever the views do; "*": all that are not in boxes and
  // keypoints. A column that looks like boxes, points or masks, and of which the data set does not say what
  // it is, must be here or there if pixels are moved: it is an error at start otherwise. All other columns
  // are delivered as stored.
  std::set<std::string> as_stored{};
  // A batch then has a column `correspondence`, f32 [batch, views, 3, 3]:
  // from the stored sample to each view (geometry.hpp).
  bool correspondence = false;
  // Default: never. Comparing costs CPU time for each sample.
  Verify verify = Verify::never;
  // By name. Ragged columns that are not named are padded.
  std::map<std::string, RaggedOptions> ragged;

  // How it is loaded.
  TransportKind transport = TransportKind::automatic;
  // Batches ahead of the consumer, 1 to 64. There are prefetch + 1 slots, so that one can be lent.
  std::uint32_t prefetch = 4;
  // Threads that copy and decompress. 0: the number of usable CPUs, at most 8;
  // 16 while shards are on a server.
  std::uint32_t threads = 0;

  // Bounds of memory, in bytes.
  //
  // mapped: budget for registered shards. 0: half of what cgroup and MemAvailable allow. A global shuffle
  // needs all shards in it. In a windowed or sequential order, shards that do not fit are staged.
  std::uint64_t registered_bytes = 0;
  // staged, direct: bound of the pinned ring. mapped: bound of the memory in which samples are staged until
  // all shards are registered; if it is too small for that, batches wait for the registration of their
  // shards.
  std::uint64_t pinned_bytes = std::uint64_t{1} << 30U;
  // resident: bound of device memory for samples. 0: half of what is free beside the ring. Never more than
  // the samples of this rank need: its part of the data set in a sequential order, else all of it.
  std::uint64_t resident_bytes = 0;
  // direct: bytes of reads in flight.
  std::uint64_t readahead_bytes = std::uint64_t{256} << 20U;

  // Of a data set on servers: the folder for whole shards, which all processes of a node may share, and the
  // most bytes that its files have (0: what the disk has). Nothing is removed from it (docs/remote.md).
  std::filesystem::path cache{};
  std::uint64_t cache_bytes = 0;
  // Of a data set on servers: the folder through which shards pass that do not fit in the cache, ahead of the
  // order, and the most bytes that they have at a time. Empty: the cache folder, or without a cache TMPDIR.
  // 0: what two windows of shards need, at most a quarter of the disk. A global shuffle has no such area:
  // samples whose shard is not in the cache are requested one by one.
  std::filesystem::path transit{};
  std::uint64_t transit_bytes = 0;
};

struct LoaderStats {
  // Delivered so far.
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  // Stored bytes moved to the device, or served from its memory (resident).
  std::uint64_t bytes = 0;

  // Who waited for whom, in seconds: the loader for pages, reads and decompression; the loader for copies and
  // transforms of earlier batches; the loader for a batch to be given back; the consumer in next().
  double storage_seconds = 0;
  double link_seconds = 0;
  double consumer_seconds = 0;
  double starved_seconds = 0;

  // The transport that is used. `reason` says why, which ones were ruled out and by what, and for mapped how
  // many shards could not be registered and why.
  TransportKind transport = TransportKind::automatic;
  std::string reason;

  // Of a data set on servers: bytes that were received, requests, how many of them were repeated after a
  // failure, and the seconds that batches waited for their shards. 0 where all shards are in the cache.
  std::uint64_t fetched_bytes = 0;
  std::uint64_t requests = 0;
  std::uint64_t retries = 0;
  double fetch_seconds = 0;
  // Whole shards that came to this machine, fetched or found in the cache; in transit, those of every epoch.
  std::uint64_t arrived_shards = 0;
  std::uint64_t arrived_bytes = 0;
  // Of the shards that went through the transit area, and of those that are in it now: on the disk.
  std::uint64_t passed_bytes = 0;
  std::uint64_t transit_bytes = 0;
  // The first thing that kept a shard out of the cache or the transit area, and what to do, but for a lack of
  // room; empty: nothing did. The batches are right all the same: such shards are read by range.
  std::string storage_problem;

  // Memory that is used now.
  std::uint64_t registered_bytes = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t device_bytes = 0;
};

// Part of a batch as a tensor in C order. It borrows the batch's memory and must not outlive it.
struct TensorView {
  const std::byte* data = nullptr;
  DType dtype = DType::u8;
  // [rows of the batch, ...]
  std::vector<std::uint64_t> shape;
  // In elements.
  std::vector<std::int64_t> strides;
  // Where `data` can be read. Host memory: {host, 0}.
  DeviceKind device = DeviceKind::host;
  int ordinal = 0;

  std::uint64_t elements() const noexcept;
  std::uint64_t size_bytes() const noexcept;
  // The elements as T, which must have the size of the dtype (16-bit floats: std::uint16_t). Throws
  // invalid_argument if it has not.
  template <class T>
  const T* as() const {
    check_element_size(sizeof(T));
    return reinterpret_cast<const T*>(data);
  }

 private:
  void check_element_size(std::size_t size) const;
};

// A batch is a lease on a slot of the loader. Move-only.
//
// It remembers each stream that was given to wait_on(), remember() or to_dlpack_...(stream). When it is
// released or destroyed, its memory, on the device and on the host, is reused only after the work that is in
// these streams at that moment; without streams, after its own copies. So it may be dropped at any time, also
// by `break` or an exception. Reads by the host (after wait()), and streams that it was not told about, must
// have ended by then.
//
// Some streams cannot tell when they are done: they capture a CUDA graph, which would read the memory at each
// replay, they belong to another GPU, or the device is lost. Then the memory is never reused. release()
// throws the reason, and so does every later call of the loader.
//
// Thread safety: several threads may call const members at once. A moved-from batch has size 0 and no images.
// Its other members throw invalid_argument, and release() does nothing.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  // Number of rows: batch_size. In the last batch it can be smaller, even 0, with tail short. With tail pad
  // the last rows can be padding (mask 0).
  std::uint64_t size() const noexcept;
  std::uint64_t epoch() const noexcept;
  // Position among this rank's batches of the epoch.
  std::uint64_t index() const noexcept;
  // A delivered sample of a view. Throws invalid_argument if there is no such view.
  const SampleSpec& spec(std::size_t view = 0) const;
  // Views of each sample: 1, and LoaderOptions::further_views.
  std::size_t views() const;

  // On the device.
  //
  // [batch, channel, row, column] or [batch, row, column, channel], as spec() says.
  TensorView images(std::size_t view = 0) const;
  // "labels" or a further column: [batch, ...]; of ragged ones as RaggedOptions says. Boxes and
  // keypoints are those of the view, other columns are the same for all. Throws not_found, and
  // unsupported for a text column.
  TensorView column(std::string_view name, std::size_t view = 0) const;
  // A further image field with a view's crop and operations: [batch, ...], masks [batch, row, column]. Throws
  // not_found if LoaderOptions::fields does not have it, and invalid_argument if there is no such view.
  TensorView field(std::string_view name, std::size_t view = 0) const;
  // Indices in the data set: int64 [batch].
  TensorView device_ids() const;
  // True for real samples: bool [batch].
  TensorView device_mask() const;

  // The same in host memory, which may be read at once, without wait().
  //
  // Throws unsupported if the labels are not I64 [N].
  std::span<const std::int64_t> labels() const;
  // Errors: those of column().
  TensorView host_column(std::string_view name, std::size_t view = 0) const;
  // The text column `name` of each sample, UTF-8, read from the shards.
  // Errors: not_found, unsupported (another kind of column), io, corrupt.
  std::vector<std::string> texts(std::string_view name) const;
  // Empty after release().
  std::span<const std::uint64_t> ids() const noexcept;
  // 1 for real samples. Empty after release().
  std::span<const std::uint8_t> mask() const noexcept;

  // Blocks the calling thread until the batch can be read on the host. Errors: io, corrupt (naming shard and
  // sample).
  void wait() const;
  // True if wait() would return at once; false if `timeout` passed before.
  bool wait_ready(std::chrono::milliseconds timeout) const;
  // Orders later work in `stream` after the batch, and remembers the stream. The calling thread does not
  // wait, except on the host device. Errors: invalid_argument (a stream of another kind of device; a stream
  // that captures a CUDA graph), io.
  void wait_on(StreamRef stream) const;
  // Remembers a stream that is already ordered after the batch, for instance by an event of yours.
  void remember(StreamRef stream) const;
  // Gives the memory back before the batch is destroyed. DLPack tensors made from the batch keep it as long
  // as they live. Can be called again. Afterwards size, epoch, index and spec are still valid, ids() and
  // mask() are empty, and the other members throw invalid_argument. Errors: see above.
  void release();

  // A view of this batch as a DLPack 1.0 tensor, with the read-only flag. The tensor shares the memory
  // until its deleter runs, in any thread. The batch or the tensor that ends last gives the memory back, as
  // above. With `consumer`, wait_on(consumer) is called first; without it the calling thread waits, unless
  // wait() or wait_on() was called before. Errors: those of wait() and wait_on(); invalid_argument if the
  // view is not of this batch.
  DLManagedTensorVersioned* to_dlpack(const TensorView& view);
  DLManagedTensorVersioned* to_dlpack(const TensorView& view, StreamRef consumer);

 private:
  friend class Loader;
  struct Lease;
  explicit Batch(std::shared_ptr<Lease> lease) noexcept;
  Lease& lease() const;
  TensorView view(const std::byte* data, DType dtype, std::vector<std::uint64_t> shape, bool on_device) const;
  std::shared_ptr<Lease> lease_;
};

class Loader {
 public:
  // Errors: invalid_argument (naming option and bounds), resource, not_found, corrupt, io.
  Loader(Dataset dataset, std::shared_ptr<Device> device, LoaderOptions options);
  Loader(Loader&&) noexcept;
  // Stops and joins its threads within a second, and frees all memory except that of the batches that still
  // exist. They stay valid.
  ~Loader();

  // With the views that set_views() or resume() has set, also where the epoch that runs has others.
  // Valid until one of them is called.
  const LoaderOptions& options() const noexcept;
  // A delivered sample of one of these views; those of a batch are in Batch::spec().
  // Throws invalid_argument if there is no such view.
  SampleSpec delivered(std::size_t view = 0) const;
  // Of this rank; all ranks have the same number.
  std::uint64_t batches_per_epoch() const noexcept;

  // Drops prefetched batches of another epoch. Waits until the loader's thread has finished its current
  // batch.
  void start_epoch(std::uint64_t epoch);
  // Other views from the epoch on that starts next, in place of LoaderOptions::transform and further_views
  // (progressive resizing). An epoch that runs goes on with its own; batches of the next one that are
  // already prepared are dropped. When that epoch starts, the loader makes its threads and memory again,
  // within the same bounds, as a new loader would; batches that still exist stay valid, and samples that
  // stayed on the device are uploaded again. If this fails (resource), the epoch has not started: set other
  // views, or start it again. Called twice, the last call counts. Throws invalid_argument, naming view and
  // bound, and changes nothing.
  void set_views(TransformOptions transform, std::vector<TransformOptions> further_views = {});
  // The next batch, or nothing at the end of the epoch. Throws the error of a worker, or what wait() of a
  // batch of this epoch threw, naming shard and sample, and the same again until start_epoch() or resume().
  // Throws cancelled after cancel(), and resource if all slots are lent.
  std::optional<Batch> next();
  // True if next() would not wait for the loader; false if `timeout` passed before. For callers that must
  // check something else from time to time, such as an interpreter its signals. The wait counts in
  // starved_seconds.
  bool wait_ready(std::chrono::milliseconds timeout);
  // May be called from any thread at any time. next() throws cancelled from now on, even if it is waiting,
  // until the next start_epoch() or resume(). If cancel() and start_epoch() run at the same time, the later
  // one wins: a cancel() that comes after start_epoch() has started cancels the new epoch, even before
  // start_epoch() returns.
  void cancel() noexcept;

  LoaderState state() const;
  // Continues from a state, with the views of the state: those of its epoch for the rest of that epoch, and
  // those that were set for the epochs after it. To go on with this loader's views, clear LoaderState::views
  // and next_views before. Throws invalid_argument, naming what differs, if the state is of another data set,
  // seed, global batch size or sequence (order, window, tail, partition).
  void resume(const LoaderState& state);
  LoaderStats stats() const;

  // A range for `for (Batch& batch : loader.epoch(e))`. After a resume() inside of this epoch it is the rest
  // of it; after a resume() at its end it is empty once, and a further call is a new run of the epoch.
  class Epoch;
  Epoch epoch(std::uint64_t epoch);

  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  Loader& operator=(Loader&&) = delete;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// A single-pass range over the rest of an epoch. Each batch is released when the next one is requested,
// unless it was moved out.
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
