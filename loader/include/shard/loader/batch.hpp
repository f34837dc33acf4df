// Batch: the samples of a batch on the device, and their labels and columns there and on the host.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/error.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/stream.hpp"

struct DLManagedTensorVersioned;

namespace shard {

struct SlotColumn;

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
  // [batch, channel, row, column] or [batch, row, column, channel], as spec() says. Of a view of patches
  // [patches, elements of a patch]; columns patch_offsets, patch_coords and patch_samples say which they are.
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

  // Of the batches that were made as one with this (LoaderOptions::together), itself included, in order:
  // the rows of each, which of them it is, and a column of all, one batch after the other. All of them are
  // ready with this one. Errors: those of column().
  std::vector<std::uint64_t> rows_together() const;
  std::size_t place_together() const;
  TensorView column_together(std::string_view name, std::size_t view = 0) const;

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
  bool is_mine(const TensorView& view) const;
  TensorView rows_of(const SlotColumn& column, const std::byte* begin, bool on_device) const;
  std::shared_ptr<Lease> lease_;
};

}  // namespace shard
