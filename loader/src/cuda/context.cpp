#include "cuda/context.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <exception>
#include <system_error>
#include <thread>

#include "cuda/driver.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

CUcontext current_context() {
  static const auto get = driver_function<CUresult (*)(CUcontext*)>("cuCtxGetCurrent");
  CUcontext context = nullptr;
  if (const CUresult result = get(&context); result != CUDA_SUCCESS)
    throw Error(ErrorCode::io, fmt::format("CUDA: cuCtxGetCurrent: error {}", static_cast<int>(result)));
  return context;
}

CUresult set_context(CUcontext context) {
  static const auto set = driver_function<CUresult (*)(CUcontext)>("cuCtxSetCurrent");
  return set(context);
}

CUstreamCaptureMode exchange_mode(CUstreamCaptureMode mode) {
  static const auto exchange =
      driver_function<CUresult (*)(CUstreamCaptureMode*)>("cuThreadExchangeStreamCaptureMode");
  exchange(&mode);
  return mode;
}

// The context that enter_cuda() made this thread's for good.
thread_local CUcontext entered_context = nullptr;

}  // namespace

void check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw Error(ErrorCode::io,
              fmt::format("CUDA: {}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)));
}

CudaContext start_cuda(int ordinal) {
  CudaContext context{ordinal, nullptr};
  std::exception_ptr failure;
  try {
    std::thread([&] {
      try {
        exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
        check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
        check_cuda(cudaFree(nullptr), "starting the device");
        context.handle = current_context();
      } catch (...) {
        failure = std::current_exception();
      }
    }).join();
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::resource,
                fmt::format("cannot start a thread to start the GPU on: {}", error.what()));
  }
  if (failure) std::rethrow_exception(failure);
  return context;
}

void enter_cuda(const CudaContext& context) {
  exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
  check_cuda(cudaSetDevice(context.ordinal), "cudaSetDevice");
  entered_context = context.handle;
}

RelaxedCapture::RelaxedCapture() : mode_(exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED)) {}
RelaxedCapture::~RelaxedCapture() { exchange_mode(static_cast<CUstreamCaptureMode>(mode_)); }

CudaScope::CudaScope(const CudaContext& context) : entered_(entered_context == context.handle) {
  if (entered_) return;
  relaxed_.emplace();
  previous_ = current_context();
  if (previous_ != context.handle) {
    if (const CUresult result = set_context(context.handle); result != CUDA_SUCCESS)
      throw Error(ErrorCode::io, fmt::format("CUDA: device {} cannot be used on this thread: error {}",
                                             context.ordinal, static_cast<int>(result)));
    selected_ = true;
  }
}

CudaScope::~CudaScope() {
  if (selected_) set_context(previous_);
}

}  // namespace shard
