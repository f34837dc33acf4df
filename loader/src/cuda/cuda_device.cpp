// The CUDA device.
#include "shard/loader/cuda_device.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <memory>
#include <string>
#include <utility>

#include "cuda/batched_copy.hpp"
#include "cuda/blocks.hpp"
#include "cuda/context.hpp"
#include "cuda/cuda_stream.hpp"
#include "cuda/events.hpp"
#include "cuda/kernels/transform.hpp"
#include "cuda/registration.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

// Throws if the stream captures a CUDA graph: it would put what is queued into the graph instead of doing it.
// This check does not break the capture.
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

std::string why_there_is_none(cudaError_t error) {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) return "no NVIDIA driver is loaded";
  if (error == cudaErrorInsufficientDriver)
    return fmt::format(
        "the NVIDIA driver is for CUDA {}.{} at most, and this build needs {}.{}; install a newer driver, or "
        "build with an older CUDA toolkit",
        version / 1000, version % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  return fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal) {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
      cudaGetLastError();
      throw Error(
          ErrorCode::unsupported,
          fmt::format("device \"cuda:{}\": no CUDA device can be used: {}; use the host instead (\"cpu\")",
                      ordinal, why_there_is_none(error)));
    }
    if (ordinal < 0 || ordinal >= count)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("device \"cuda:{}\": there are {} CUDA devices, numbered from 0; choose one of them",
                      ordinal, count));
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
    info_.decodes_jpeg = true;
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
  bool is_pinned(std::span<const std::byte> range) override {
    if (range.empty()) return false;
    const CudaScope scope(context_);
    for (const std::byte* const at : {range.data(), range.data() + range.size() - 1}) {
      cudaPointerAttributes attributes{};
      if (cudaPointerGetAttributes(&attributes, at) != cudaSuccess) {
        cudaGetLastError();
        return false;
      }
      if (attributes.type != cudaMemoryTypeHost) return false;
    }
    return true;
  }
  std::unique_ptr<Stream> create_stream() override {
    return make_cuda_stream(context_, copy_method_, kernels_read_registered_, events_);
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
