// The CUDA device. Beside the kernels and registration.cpp, the only file that names the CUDA runtime.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/registration.hpp"
#include "cuda/transform.hpp"
#include "shard/error.hpp"
#include "shard/loader/cuda_device.hpp"
#include "shard/unique_handle.hpp"

namespace shard {

namespace {

// Throws Error(io) for a failed call; clears the error that CUDA keeps for the thread, so that it does not
// surface elsewhere.
void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorCode::io,
              fmt::format("CUDA: {}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)));
}

class DeviceScope {
 public:
  explicit DeviceScope(int ordinal) {
    check(cudaGetDevice(&previous_), "cudaGetDevice");
    changed_ = previous_ != ordinal;
    if (changed_) check(cudaSetDevice(ordinal), "cudaSetDevice");
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope() {
    if (changed_) cudaSetDevice(previous_);
  }

 private:
  int previous_ = 0;
  bool changed_ = false;
};

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
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
          "cudaEventCreate");
    return UniqueEvent(event);
  }
  void give(UniqueEvent event) {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(event));
  }

 private:
  std::mutex mutex_;
  std::vector<UniqueEvent> free_;
};

class CudaEvent final : public Event::Impl {
 public:
  // Records at the end of `stream`'s work; the current device is the stream's. Streams that were told to wait
  // for an event's earlier recording are not disturbed when it is recorded again.
  CudaEvent(std::shared_ptr<EventPool> pool, cudaStream_t stream)
      : pool_(std::move(pool)), event_(pool_->take()) {
    check(cudaEventRecord(event_.get(), stream), "cudaEventRecord");
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override { pool_->give(std::move(event_)); }
  bool done() override {
    const cudaError_t error = cudaEventQuery(event_.get());
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(error, "cudaEventQuery");
    return true;
  }
  void wait() override { check(cudaEventSynchronize(event_.get()), "cudaEventSynchronize"); }
  void* native() noexcept override { return event_.get(); }

 private:
  std::shared_ptr<EventPool> pool_;
  UniqueEvent event_;
};

class PinnedBlock final : public Block {
 public:
  explicit PinnedBlock(std::uint64_t size) : size_(size) {
    const cudaError_t error = cudaHostAlloc(&data_, size, cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw Error(
          ErrorCode::resource,
          fmt::format("{} bytes of pinned memory were refused; lower pinned_bytes, batch_size or prefetch",
                      size));
    }
    check(error, "cudaHostAlloc");
  }
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;
  ~PinnedBlock() override { cudaFreeHost(data_); }
  std::byte* data() const noexcept override { return static_cast<std::byte*>(data_); }
  std::uint64_t size_bytes() const noexcept override { return size_; }

 private:
  void* data_ = nullptr;
  std::uint64_t size_;
};

class DeviceBlock final : public Block {
 public:
  DeviceBlock(int ordinal, std::uint64_t size) : size_(size) {
    DeviceScope scope(ordinal);
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
    check(error, "cudaMalloc");
  }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  ~DeviceBlock() override { cudaFree(data_); }
  std::byte* data() const noexcept override { return static_cast<std::byte*>(data_); }
  std::uint64_t size_bytes() const noexcept override { return size_; }

 private:
  void* data_ = nullptr;
  std::uint64_t size_;
};

class CudaStream final : public Stream {
 public:
  CudaStream(int ordinal, bool batched, std::shared_ptr<EventPool> events)
      : ordinal_(ordinal), batched_(batched), events_(std::move(events)) {
    DeviceScope scope(ordinal);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    stream_.reset(stream);
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override { cudaStreamSynchronize(stream_.get()); }

  void copy(std::span<const CopyItem> items) override { copy_items(items, cudaMemcpyHostToDevice); }
  void upload(const CopyItem& item) override {
    DeviceScope scope(ordinal_);
    if (item.size_bytes > kUploadBytes)
      check(cudaMemcpyAsync(item.target, item.source, item.size_bytes, cudaMemcpyHostToDevice, stream_.get()),
            "cudaMemcpyAsync");
    else
      launch_upload(item, stream_.get());
  }
  void gather(std::span<const CopyItem> items) override {
    if (items.empty()) return;
    DeviceScope scope(ordinal_);
    Scratch& scratch = next_scratch(gather_scratch_bytes(items.size()));
    launch_gather(items, scratch.pinned->data(), scratch.device->data(), stream_.get());
    scratch.used = record();
  }
  void copy_to_host(std::span<const CopyItem> items) override { copy_items(items, cudaMemcpyDeviceToHost); }

  void transform(const TransformWork& work) override {
    DeviceScope scope(ordinal_);
    Scratch& scratch = next_scratch(transform_scratch_bytes(work));
    launch_transform(work, scratch.pinned->data(), scratch.device->data(), stream_.get());
    scratch.used = record();
  }

  Event record() override {
    DeviceScope scope(ordinal_);
    return Event(std::make_shared<CudaEvent>(events_, stream_.get()));
  }
  void wait(const Event& event) override {
    if (event.impl() == nullptr || event.impl()->native() == nullptr) return;
    DeviceScope scope(ordinal_);
    check(cudaStreamWaitEvent(stream_.get(), static_cast<cudaEvent_t>(event.impl()->native()), 0),
          "cudaStreamWaitEvent");
  }
  void synchronize() override { check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize"); }
  void* native() noexcept override { return stream_.get(); }

 private:
  // Parameters of a transform in flight; used again when its kernel has ended.
  struct Scratch {
    std::unique_ptr<Block> pinned;
    std::unique_ptr<Block> device;
    Event used;
  };

  Scratch& next_scratch(std::uint64_t size) {
    if (scratch_.size() < kScratches) {
      scratch_.emplace_back();
      scratch_next_ = scratch_.size() - 1;
    } else {
      scratch_next_ = (scratch_next_ + 1) % kScratches;
    }
    Scratch& scratch = scratch_[scratch_next_];
    scratch.used.wait();
    if (!scratch.pinned || scratch.pinned->size_bytes() < size) {
      scratch.pinned = std::make_unique<PinnedBlock>(size);
      scratch.device = std::make_unique<DeviceBlock>(ordinal_, size);
    }
    return scratch;
  }

  void copy_items(std::span<const CopyItem> items, cudaMemcpyKind kind) {
    DeviceScope scope(ordinal_);
    if (!batched_ || items.size() < 2) {
      for (const CopyItem& item : items)
        check(cudaMemcpyAsync(item.target, item.source, item.size_bytes, kind, stream_.get()),
              "cudaMemcpyAsync");
      return;
    }
    targets_.clear();
    sources_.clear();
    sizes_.clear();
    for (const CopyItem& item : items) {
      targets_.push_back(item.target);
      sources_.push_back(item.source);
      sizes_.push_back(item.size_bytes);
    }
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    std::size_t first = 0;
    check(cudaMemcpyBatchAsync(targets_.data(), sources_.data(), sizes_.data(), items.size(), &attributes,
                               &first, 1, stream_.get()),
          "cudaMemcpyBatchAsync");
  }

  static constexpr std::size_t kScratches = 8;
  static constexpr std::uint64_t kUploadBytes = std::uint64_t{128}
                                                << 10U;  // beyond, the copy engine is faster
  int ordinal_;
  bool batched_;
  std::shared_ptr<EventPool> events_;
  UniqueStream stream_;
  std::vector<Scratch> scratch_;
  std::size_t scratch_next_ = 0;
  std::vector<void*> targets_;
  std::vector<const void*> sources_;
  std::vector<std::size_t> sizes_;
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
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
    int read_only = 0;
    check(cudaDeviceGetAttribute(&read_only, cudaDevAttrHostRegisterReadOnlySupported, ordinal),
          "cudaDeviceGetAttribute");
    int driver = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    info_.kind = DeviceKind::cuda;
    info_.ordinal = ordinal;
    info_.name = properties.name;
    info_.memory_bytes = properties.totalGlobalMem;
    info_.registers_read_only = read_only != 0;
    info_.registration_piece_bytes = kRegistrationPiece;
    info_.batched_copy = driver >= 12'080;
    DeviceScope scope(ordinal);
    check(cudaFree(nullptr), "starting the device");
  }

  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Block> allocate_pinned(std::uint64_t size) override {
    DeviceScope scope(info_.ordinal);
    return std::make_unique<PinnedBlock>(size);
  }
  std::unique_ptr<Block> allocate_device(std::uint64_t size) override {
    return std::make_unique<DeviceBlock>(info_.ordinal, size);
  }
  std::uint64_t free_memory_bytes() override {
    DeviceScope scope(info_.ordinal);
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }
  std::unique_ptr<Registration> register_read_only(std::span<const std::byte> range) override {
    if (!info_.registers_read_only)
      throw Error(ErrorCode::unsupported, fmt::format("{} cannot register read-only mappings", info_.name));
    DeviceScope scope(info_.ordinal);
    return register_shared(range, cudaHostRegisterPortable | cudaHostRegisterReadOnly);
  }
  std::unique_ptr<Stream> create_stream() override {
    return std::make_unique<CudaStream>(info_.ordinal, info_.batched_copy, events_);
  }
  void wait_native(void* native_stream, const Event& event) override {
    if (event.impl() == nullptr) return;
    if (native_stream == nullptr) return event.wait();
    DeviceScope scope(info_.ordinal);
    check(cudaStreamWaitEvent(static_cast<cudaStream_t>(native_stream),
                              static_cast<cudaEvent_t>(event.impl()->native()), 0),
          "cudaStreamWaitEvent");
  }
  Event record_native(void* native_stream) override {
    if (native_stream == nullptr) return Event();
    DeviceScope scope(info_.ordinal);
    return Event(std::make_shared<CudaEvent>(events_, static_cast<cudaStream_t>(native_stream)));
  }
  void begin_range(const char* name) noexcept override { nvtxRangePushA(name); }
  void end_range() noexcept override { nvtxRangePop(); }
  void check() override {
    DeviceScope scope(info_.ordinal);
    check(cudaGetLastError(), "an earlier call");
  }

 private:
  static void check(cudaError_t error, const char* what) { shard::check(error, what); }
  DeviceInfo info_;
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>();
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
