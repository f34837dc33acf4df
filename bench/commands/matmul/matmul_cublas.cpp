// Products by cuBLAS. The library is looked for when the program runs: shardbench starts without it.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "base/system/stopwatch.hpp"
#include "commands/matmul/matmul_bench.hpp"
#include "harness/shared_library.hpp"
#include "shard/dtype.hpp"
#include "shard/error.hpp"
#include "shard/loader/cuda_device.hpp"

namespace shard::bench {
namespace {

struct Cublas {
  decltype(&::cublasCreate_v2) create = nullptr;
  decltype(&::cublasDestroy_v2) destroy = nullptr;
  decltype(&::cublasSetStream_v2) set_stream = nullptr;
  // cublasGemmEx, which the header overloads.
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                         const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                         cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t) = nullptr;
  decltype(&::cublasGetStatusString) status_string = nullptr;

  void check(cublasStatus_t status, const char* what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw Error(status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::resource : ErrorCode::io,
                fmt::format("cuBLAS: {}: {}", what, status_string(status)));
  }
};

// Stays loaded. Throws unsupported.
const Cublas& cublas() {
  static const Cublas library = [] {
    const SharedLibrary library_file("cuBLAS", {fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR)});
    Cublas found;
    library_file.get(found.create, "cublasCreate_v2");
    library_file.get(found.destroy, "cublasDestroy_v2");
    library_file.get(found.set_stream, "cublasSetStream_v2");
    library_file.get(found.gemm, "cublasGemmEx");
    library_file.get(found.status_string, "cublasGetStatusString");
    return found;
  }();
  return library;
}

int attribute(cudaDeviceAttr which) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess) return value;
  cudaGetLastError();
  return 0;
}

// A cuBLAS handle and the stream that it works on, of GPU 0.
class Handle {
 public:
  Handle() : device_(make_cuda_device(0)), stream_(device_->create_stream()) {
    cublas().check(cublas().create(&handle_), "cublasCreate");
    const cublasStatus_t status = cublas().set_stream(handle_, static_cast<cudaStream_t>(stream_->native()));
    if (status != CUBLAS_STATUS_SUCCESS) cublas().destroy(handle_);
    cublas().check(status, "cublasSetStream");
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { cublas().destroy(handle_); }
  cublasHandle_t get() const noexcept { return handle_; }
  Device& device() const noexcept { return *device_; }
  Stream& stream() const noexcept { return *stream_; }

 private:
  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  cublasHandle_t handle_ = nullptr;
};

class CublasMultiplier final : public Multiplier {
 public:
  CublasMultiplier(std::shared_ptr<Handle> handle, GpuArithmetic kind)
      : handle_(std::move(handle)), kind_(kind) {}
  std::string name() const override {
    return kind_ == GpuArithmetic::f32 ? "GPU f32" : kind_ == GpuArithmetic::tf32 ? "GPU TF32" : "GPU f16";
  }
  bool on_gpu() const noexcept override { return true; }

  double load(std::size_t n, std::span<const float> a, std::span<const float> b) override {
    reserve(n);
    put(a, pinned_a_->data());
    put(b, pinned_b_->data());
    const Stopwatch watch;
    const CopyItem items[] = {{a_->data(), pinned_a_->data(), bytes()},
                              {b_->data(), pinned_b_->data(), bytes()}};
    handle_->stream().copy(items);
    handle_->stream().synchronize();
    return watch.seconds();
  }
  double multiply(std::size_t times) override {
    const Stopwatch watch;
    for (std::size_t i = 0; i < times; ++i) queue();
    handle_->stream().synchronize();
    return watch.seconds();
  }
  double store(std::span<float> c) override {
    const Stopwatch watch;
    const CopyItem item{pinned_c_->data(), c_->data(), c.size_bytes()};
    handle_->stream().copy_to_host({&item, 1});
    handle_->stream().synchronize();
    const double seconds = watch.seconds();
    std::memcpy(c.data(), pinned_c_->data(), c.size_bytes());
    return seconds;
  }
  // float32: as on the CPU. The others also round both factors, to 11 bits (TF32 may cut them off instead),
  // and tensor cores cut off sums.
  double error_bound(std::size_t n) const noexcept override {
    const auto size = static_cast<double>(n);
    if (kind_ == GpuArithmetic::f32) return 8 * std::sqrt(size) * 0x1p-24;
    return (kind_ == GpuArithmetic::tf32 ? 0x1p-9 : 0x1p-10) + size * 0x1p-23;
  }
  double peak_flops() override {
    return gpu_peak_flops(kind_, attribute(cudaDevAttrComputeCapabilityMajor),
                          attribute(cudaDevAttrComputeCapabilityMinor),
                          attribute(cudaDevAttrMultiProcessorCount),
                          static_cast<std::uint64_t>(attribute(cudaDevAttrClockRate)) * 1000);
  }
  std::string peak_is() const override {
    return kind_ == GpuArithmetic::f32 ? "every multiprocessor at the highest clock"
                                       : "every tensor core at the highest clock";
  }

 private:
  bool half() const noexcept { return kind_ == GpuArithmetic::f16; }
  std::uint64_t bytes() const noexcept { return n_ * n_ * (half() ? 2 : 4); }

  void reserve(std::size_t n) {
    if (n == n_) return;
    n_ = 0;
    for (auto* block : {&a_, &b_, &c_, &pinned_a_, &pinned_b_, &pinned_c_}) block->reset();
    Device& device = handle_->device();
    const std::uint64_t factor_bytes = n * n * (half() ? 2 : 4);
    for (auto* block : {&a_, &b_}) *block = device.allocate_device(factor_bytes);
    for (auto* block : {&pinned_a_, &pinned_b_}) *block = device.allocate_pinned(factor_bytes);
    c_ = device.allocate_device(n * n * 4);
    pinned_c_ = device.allocate_pinned(n * n * 4);
    n_ = n;
  }
  void put(std::span<const float> values, std::byte* out) const {
    if (!half()) {
      std::memcpy(out, values.data(), values.size_bytes());
      return;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t bits = f32_to_f16(values[i]);
      std::memcpy(out + 2 * i, &bits, 2);
    }
  }
  // cuBLAS takes columns for rows: c^T = b^T a^T.
  void queue() {
    const auto n = static_cast<int>(n_);
    const float one = 1;
    const float zero = 0;
    const cudaDataType_t type = half() ? CUDA_R_16F : CUDA_R_32F;
    const cublasComputeType_t compute =
        kind_ == GpuArithmetic::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublas().check(
        cublas().gemm(handle_->get(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b_->data(), type, n,
                      a_->data(), type, n, &zero, c_->data(), CUDA_R_32F, n, compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  }

  std::shared_ptr<Handle> handle_;
  GpuArithmetic kind_;
  std::size_t n_ = 0;
  std::unique_ptr<Block> a_, b_, c_, pinned_a_, pinned_b_, pinned_c_;
};

}  // namespace

namespace detail {

void add_cublas_multipliers(std::vector<std::unique_ptr<Multiplier>>& list, std::string& absent) {
  try {
    const auto handle = std::make_shared<Handle>();
    for (const GpuArithmetic kind : {GpuArithmetic::f32, GpuArithmetic::tf32, GpuArithmetic::f16}) {
      if (kind == GpuArithmetic::tf32 && attribute(cudaDevAttrComputeCapabilityMajor) < 8) continue;
      list.push_back(std::make_unique<CublasMultiplier>(handle, kind));
    }
  } catch (const Error& error) {
    absent = error.what();
  }
}

}  // namespace detail
}  // namespace shard::bench
