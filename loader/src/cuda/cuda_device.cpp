// The CUDA device. Beside the kernels, context.cpp and registration.cpp, the only file that names the CUDA
// runtime.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_handle.hpp"
#include "cuda/batched_copy.hpp"
#include "cuda/context.hpp"
#include "cuda/registration.hpp"
#include "cuda/transform.hpp"
#include "shard/error.hpp"
#include "shard/loader/cuda_device.hpp"

namespace shard {

namespace {

// A stream that captures a CUDA graph would carry what it is told into the graph, and not do it. Asking
// breaks no capture.
void refuse_capture(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(stream, &status);
  if (error == cudaErrorStreamCaptureImplicit) {
    cudaGetLastError();
    throw Error(ErrorCode::invalid_argument,
                "the default stream cannot be used while a stream that waits for it captures a CUDA graph: "
                "capture in a stream made with cudaStreamNonBlocking, or take and release batches outside of "
                "the capture");
  }
  check_cuda(error, "cudaStreamIsCapturing");
  if (status != cudaStreamCaptureStatusNone)
    throw Error(
        ErrorCode::invalid_argument,
        "the stream captures a CUDA graph, which would read this batch's memory again at each replay, "
        "when it holds other samples: take and release batches outside of the capture, and copy them "
        "into an input of the graph's own");
}

struct StreamTraits {
  using type = cudaStream_t;
  static type invalid() noexcept { return nullptr; }
  static void close(type stream) noexcept { cudaStreamDestroy(stream); }
};
struct EventTraits {
  using type = cudaEvent_t;
  static type invalid() noexcept { return nullptr; }
  static void close(type event) noexcept { cudaEventDestroy(event); }
};
using UniqueStream = UniqueHandle<StreamTraits>;
using UniqueEvent = UniqueHandle<EventTraits>;

// Events that are not in use: making one costs more than recording one.
class EventPool {
 public:
  explicit EventPool(const CudaContext& context) : context_(context) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  ~EventPool() {
    quietly(context_, [&] { free_.clear(); });
  }
  const CudaContext& context() const noexcept { return context_; }
  // The current device is the one that the event is for.
  UniqueEvent take() {
    {
      std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        UniqueEvent event = std::move(free_.back());
        free_.pop_back();
        return event;
      }
    }
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
               "cudaEventCreate");
    return UniqueEvent(event);
  }
  void give(UniqueEvent event) {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(event));
  }

 private:
  const CudaContext context_;
  std::mutex mutex_;
  std::vector<UniqueEvent> free_;
};

class CudaEvent final : public Event::Impl {
 public:
  // Records at the end of `stream`'s work; the current device is the stream's. Streams that were told to wait
  // for an event's earlier recording are not disturbed when it is recorded again.
  CudaEvent(std::shared_ptr<EventPool> pool, cudaStream_t stream)
      : pool_(std::move(pool)), event_(pool_->take()) {
    check_cuda(cudaEventRecord(event_.get(), stream), "cudaEventRecord");
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override { pool_->give(std::move(event_)); }
  // Known without asking CUDA, which takes its lock: once over, an event stays so.
  bool known_over() const noexcept { return over_.load(std::memory_order_acquire); }
  bool done() override {
    if (known_over()) return true;
    const CudaScope scope(pool_->context());
    const cudaError_t error = cudaEventQuery(event_.get());
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check_cuda(error, "cudaEventQuery");
    over_.store(true, std::memory_order_release);
    return true;
  }
  void wait() override {
    if (known_over()) return;
    const CudaScope scope(pool_->context());
    check_cuda(cudaEventSynchronize(event_.get()), "cudaEventSynchronize");
    over_.store(true, std::memory_order_release);
  }
  // CUDA has no wait with an end: it is asked again and again.
  bool wait_for(std::chrono::milliseconds timeout) override {
    constexpr std::chrono::microseconds kPause{100};
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (!done()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(kPause);
    }
    return true;
  }
  void* native() noexcept override { return event_.get(); }

 private:
  std::shared_ptr<EventPool> pool_;
  UniqueEvent event_;
  std::atomic<bool> over_{false};
};

// Nothing has to wait for it any longer.
bool known_over(const Event& event) {
  const auto* const cuda = dynamic_cast<const CudaEvent*>(event.impl());
  return event.impl() == nullptr || (cuda != nullptr && cuda->known_over());
}

class PinnedBlock final : public Block {
 public:
  PinnedBlock(const CudaContext& context, std::uint64_t size) : context_(context), size_(size) {
    const CudaScope scope(context);
    const cudaError_t error = cudaHostAlloc(&data_, size, cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw Error(
          ErrorCode::resource,
          fmt::format("{} bytes of pinned memory were refused; lower pinned_bytes, batch_size or prefetch",
                      size));
    }
    check_cuda(error, "cudaHostAlloc");
  }
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;
  ~PinnedBlock() override {
    quietly(context_, [&] { cudaFreeHost(data_); });
  }
  std::byte* data() const noexcept override { return static_cast<std::byte*>(data_); }
  std::uint64_t size_bytes() const noexcept override { return size_; }

 private:
  const CudaContext context_;
  void* data_ = nullptr;
  std::uint64_t size_;
};

class DeviceBlock final : public Block {
 public:
  DeviceBlock(const CudaContext& context, std::uint64_t size) : context_(context), size_(size) {
    const CudaScope scope(context);
    const cudaError_t error = cudaMalloc(&data_, size);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      std::size_t free = 0;
      std::size_t total = 0;
      cudaMemGetInfo(&free, &total);
      throw Error(
          ErrorCode::resource,
          fmt::format(
              "{} bytes of device memory were refused, {} of {} are free; lower batch_size, prefetch or "
              "resident_bytes",
              size, free, total));
    }
    check_cuda(error, "cudaMalloc");
  }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  ~DeviceBlock() override {
    quietly(context_, [&] { cudaFree(data_); });
  }
  std::byte* data() const noexcept override { return static_cast<std::byte*>(data_); }
  std::uint64_t size_bytes() const noexcept override { return size_; }

 private:
  const CudaContext context_;
  void* data_ = nullptr;
  std::uint64_t size_;
};

class CudaStream final : public Stream {
 public:
  CudaStream(const CudaContext& context, CopyMethod method, bool kernels_read_registered,
             std::shared_ptr<EventPool> events)
      : context_(context),
        method_(method),
        batched_(method),
        kernels_read_registered_(kernels_read_registered),
        events_(std::move(events)) {
    const CudaScope scope(context);
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    stream_.reset(stream);
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override {
    quietly(context_, [&] {
      flush_upload();
      cudaStreamSynchronize(stream_.get());
      stream_.reset();
    });
  }

  void copy(std::span<const CopyItem> items) override {
    const CudaScope scope(context_);
    flush_upload();
    if (items.size() > 1 && (method_ == CopyMethod::driver || method_ == CopyMethod::driver_13))
      return batched_.queue(items, stream_.get());
    copy_each(items, cudaMemcpyHostToDevice);
  }
  // The copy engine takes the host 1 us a range (batches of 32 frames, H200), which for small ones is longer
  // than the link takes. One launch takes as long as a few of them.
  void copy_pinned(std::span<const CopyItem> items) override {
    const auto add = [](std::uint64_t sum, const CopyItem& item) { return sum + item.size_bytes; };
    const std::uint64_t bytes = std::accumulate(items.begin(), items.end(), std::uint64_t{0}, add);
    const std::uint64_t small = items.size() <= kPinnedItems ? kSmallItemBytes : kSmallItemBytes / 2;
    const bool by_kernel =
        kernels_read_registered_ && items.size() >= kFewItems && bytes <= small * items.size();
    if (!by_kernel && method_ != CopyMethod::kernel) return copy(items);
    const CudaScope scope(context_);
    flush_upload();
    while (!items.empty()) {
      const auto some = items.first(std::min(items.size(), by_kernel ? kPinnedItems : kLargeItems));
      if (by_kernel)
        launch_copy_pinned(some, stream_.get());
      else
        launch_copy_large(some, stream_.get());
      items = items.subspan(some.size());
    }
  }
  void upload(const CopyItem& item) override {
    const CudaScope scope(context_);
    flush_upload();
    if (item.size_bytes > kUploadBytes) {
      check_cuda(
          cudaMemcpyAsync(item.target, item.source, item.size_bytes, cudaMemcpyHostToDevice, stream_.get()),
          "cudaMemcpyAsync");
      return;
    }
    const std::lock_guard lock(mutex_);
    upload_ = item;
  }
  void gather(std::span<const CopyItem> items) override {
    if (items.empty()) return;
    const CudaScope scope(context_);
    flush_upload();
    Scratch& scratch = next_scratch(gather_scratch_bytes(items.size()));
    scratch.tables_there = false;
    launch_gather(items, scratch.pinned->data(), scratch.device->data(), stream_.get());
    mark_used();
  }
  void copy_to_host(std::span<const CopyItem> items) override {
    const CudaScope scope(context_);
    flush_upload();
    copy_each(items, cudaMemcpyDeviceToHost);
  }

  void transform(const TransformWork& work) override {
    const CudaScope scope(context_);
    Scratch& scratch = next_scratch(transform_scratch_bytes(work));
    TransformLaunch with;
    with.tables_there = std::exchange(scratch.tables_there, false);
    with.upload = take_upload();
    scratch.tables_there =
        launch_transform(work, scratch.pinned->data(), scratch.device->data(), stream_.get(), with);
    mark_used();
  }

  Event record() override {
    const CudaScope scope(context_);
    flush_upload();
    Event event(std::make_shared<CudaEvent>(events_, stream_.get()));
    const std::lock_guard lock(mutex_);
    for (const std::size_t scratch : unrecorded_) scratch_[scratch].used = event;
    unrecorded_.clear();
    return event;
  }
  void wait(const Event& event) override {
    if (known_over(event) || event.impl()->native() == nullptr) return;
    const CudaScope scope(context_);
    check_cuda(cudaStreamWaitEvent(stream_.get(), static_cast<cudaEvent_t>(event.impl()->native()), 0),
               "cudaStreamWaitEvent");
  }
  void synchronize() override {
    const CudaScope scope(context_);
    flush_upload();
    check_cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
  }
  void* native() noexcept override {
    quietly(context_, [&] { flush_upload(); });  // others queue behind it
    return stream_.get();
  }

 private:
  // Parameters of a transform or gather in flight; used again when its kernels have ended.
  struct Scratch {
    std::unique_ptr<Block> pinned;
    std::unique_ptr<Block> device;
    bool tables_there = false;  // of launch_transform()
    Event used;                 // guarded by mutex_
  };

  // To be used by what is queued next, and then by mark_used().
  Scratch& next_scratch(std::uint64_t size) {
    scratch_next_ = (scratch_next_ + 1) % kScratches;
    if (is_unrecorded(scratch_next_)) record();
    Scratch& scratch = scratch_[scratch_next_];
    Event used;
    {
      const std::lock_guard lock(mutex_);
      used = scratch.used;
    }
    used.wait();
    if (!scratch.pinned || scratch.pinned->size_bytes() < size) {
      scratch.tables_there = false;
      scratch.pinned = std::make_unique<PinnedBlock>(context_, size);
      scratch.device = std::make_unique<DeviceBlock>(context_, size);
    }
    return scratch;
  }
  // Until the next event that is recorded.
  void mark_used() {
    const std::lock_guard lock(mutex_);
    unrecorded_.push_back(scratch_next_);
  }
  bool is_unrecorded(std::size_t scratch) {
    const std::lock_guard lock(mutex_);
    return std::find(unrecorded_.begin(), unrecorded_.end(), scratch) != unrecorded_.end();
  }

  CopyItem take_upload() {
    const std::lock_guard lock(mutex_);
    return std::exchange(upload_, CopyItem{});
  }
  void flush_upload() { launch_upload(take_upload(), stream_.get()); }

  void copy_each(std::span<const CopyItem> items, cudaMemcpyKind kind) {
    for (const CopyItem& item : items)
      check_cuda(cudaMemcpyAsync(item.target, item.source, item.size_bytes, kind, stream_.get()),
                 "cudaMemcpyAsync");
  }

  static constexpr std::size_t kScratches = 8;
  static constexpr std::size_t kFewItems = 4;  // as long for the host as one launch
  static constexpr std::uint64_t kSmallItemBytes = std::uint64_t{96} << 10U;
  static constexpr std::uint64_t kUploadBytes = std::uint64_t{128}
                                                << 10U;  // beyond, the copy engine is faster
  const CudaContext context_;
  CopyMethod method_;
  BatchedCopy batched_;
  bool kernels_read_registered_;
  std::shared_ptr<EventPool> events_;
  UniqueStream stream_;
  std::array<Scratch, kScratches> scratch_;
  std::size_t scratch_next_ = 0;
  std::mutex mutex_;                     // record() is for any thread
  std::vector<std::size_t> unrecorded_;  // scratches without an event behind their use; guarded by mutex_
  CopyItem upload_;                      // goes with what is queued next; guarded by mutex_
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal) {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
      cudaGetLastError();
      throw Error(ErrorCode::unsupported, fmt::format("no CUDA device can be used: {} ({})",
                                                      cudaGetErrorString(error), cudaGetErrorName(error)));
    }
    if (ordinal < 0 || ordinal >= count)
      throw Error(ErrorCode::invalid_argument, fmt::format("CUDA device {}: there are {}", ordinal, count));
    const RelaxedCapture relaxed;
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
    int read_only = 0;
    check_cuda(cudaDeviceGetAttribute(&read_only, cudaDevAttrHostRegisterReadOnlySupported, ordinal),
               "cudaDeviceGetAttribute");
    info_.kind = DeviceKind::cuda;
    info_.ordinal = ordinal;
    info_.name = properties.name;
    info_.memory_bytes = properties.totalGlobalMem;
    info_.registers_read_only = read_only != 0;
    info_.registration_piece_bytes = kRegistrationPiece;
    int host_pointers = 0;
    check_cuda(cudaDeviceGetAttribute(&host_pointers, cudaDevAttrCanUseHostPointerForRegisteredMem, ordinal),
               "cudaDeviceGetAttribute");
    kernels_read_registered_ = host_pointers != 0;
    const ChosenCopy copy = choose_copy(kernels_read_registered_);
    copy_method_ = copy.method;
    info_.batched_copy = copy.method == CopyMethod::driver || copy.method == CopyMethod::driver_13;
    if (!info_.batched_copy)
      info_.copy_note =
          fmt::format("{} ({})",
                      copy.method == CopyMethod::kernel ? "a kernel copies samples to the device"
                                                        : "each sample is a copy of its own",
                      copy.reason);
    context_ = start_cuda(ordinal);
    check_kernels(properties);
    events_ = std::make_shared<EventPool>(context_);
  }

  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Block> allocate_pinned(std::uint64_t size) override {
    return std::make_unique<PinnedBlock>(context_, size);
  }
  std::unique_ptr<Block> allocate_device(std::uint64_t size) override {
    return std::make_unique<DeviceBlock>(context_, size);
  }
  std::uint64_t free_memory_bytes() override {
    const CudaScope scope(context_);
    std::size_t free = 0;
    std::size_t total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }
  std::unique_ptr<Registration> register_read_only(std::span<const std::byte> range,
                                                   const std::stop_token& stop) override {
    if (!info_.registers_read_only)
      throw Error(ErrorCode::unsupported, fmt::format("{} cannot register read-only mappings", info_.name));
    unsigned flags = cudaHostRegisterPortable | cudaHostRegisterReadOnly;
    if (kernels_read_registered_) flags |= cudaHostRegisterMapped;
    return register_shared(context_, range, flags, stop);
  }
  std::unique_ptr<Stream> create_stream() override {
    return std::make_unique<CudaStream>(context_, copy_method_, kernels_read_registered_, events_);
  }
  void wait(StreamRef stream, const Event& event) override {
    const cudaStream_t native = native_of(stream);
    const CudaScope scope(context_);
    refuse_capture(native);
    if (known_over(event)) return;
    check_cuda(cudaStreamWaitEvent(native, static_cast<cudaEvent_t>(event.impl()->native()), 0),
               "cudaStreamWaitEvent");
  }
  Event record(StreamRef stream) override {
    const cudaStream_t native = native_of(stream);
    const CudaScope scope(context_);
    refuse_capture(native);
    try {
      return Event(std::make_shared<CudaEvent>(events_, native));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}; the stream must not have been destroyed, and belong to CUDA "
                                            "device {}",
                                            error.what(), info_.ordinal));
    }
  }
  void enter_thread() override { enter_cuda(context_); }
  void begin_range(const char* name) noexcept override { nvtxRangePushA(name); }
  void end_range() noexcept override { nvtxRangePop(); }
  void check() override {
    const CudaScope scope(context_);
    check_cuda(cudaGetLastError(), "an earlier call");
  }

 private:
  // A kernel without machine code for the device would fail at the first batch.
  void check_kernels(const cudaDeviceProp& properties) const {
    const CudaScope scope(context_);
    if (kernels_run_here()) return;
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{} (CUDA device {}) has compute capability {}.{}, and this build has kernels for {} "
                    "only; build from source with -DCMAKE_CUDA_ARCHITECTURES={}{}",
                    info_.name, info_.ordinal, properties.major, properties.minor, SHARD_CUDA_ARCHITECTURES,
                    properties.major, properties.minor));
  }
  cudaStream_t native_of(StreamRef stream) const {
    void* const native = stream.stream() != nullptr ? stream.stream()->native() : stream.cuda();
    if (native == nullptr)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a stream of the host, but the batch is on CUDA device {}", info_.ordinal));
    return static_cast<cudaStream_t>(native);
  }
  DeviceInfo info_;
  bool kernels_read_registered_ = false;  // at the addresses that the host uses
  CopyMethod copy_method_ = CopyMethod::one_by_one;
  CudaContext context_;
  std::shared_ptr<EventPool> events_;
};

}  // namespace

std::shared_ptr<Device> make_cuda_device(int ordinal) { return std::make_shared<CudaDevice>(ordinal); }

int cuda_device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

}  // namespace shard
