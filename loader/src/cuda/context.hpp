// How threads call CUDA: on the loader's device, without making a context on another device, and without
// breaking a CUDA graph that another thread captures meanwhile.
//
//   a thread of the library      enter_cuda(context)      once, when it starts
//   a thread of the user         CudaScope                around each call
//
// Both make the device's primary context current by the driver's cuCtxSetCurrent. cudaSetDevice would change
// the selection of the user's thread, and restoring that would make a context on the user's device. Both also
// relax the thread's stream-capture mode. While any thread captures in mode global (the default), CUDA
// refuses calls such as cudaHostAlloc and cudaEventQuery on every thread whose mode is not relaxed, and the
// capture is lost.
#pragma once

#include <driver_types.h>

#include <optional>

struct CUctx_st;

namespace shard {

// Throws Error(io) for a failed call. Clears the error that CUDA keeps for the thread, so that a later call
// does not report it.
void check_cuda(cudaError_t error, const char* what);

// A device's primary context. A value; valid until the process ends.
struct CudaContext {
  int ordinal = 0;
  CUctx_st* handle = nullptr;
};

// Starts the device if it is not started yet. Does so on another thread, so that nothing changes for the
// caller's. Errors: unsupported (the driver lacks a function), resource (no thread), io.
CudaContext start_cuda(int ordinal);

// For a thread that the library started, as the first thing on it. Throws Error(io).
void enter_cuda(const CudaContext& context);

// Relaxes the calling thread's stream-capture mode while it exists. It calls the driver, because the runtime
// might start a device for this. Throws Error(unsupported).
class RelaxedCapture {
 public:
  RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture();

 private:
  int mode_;  // CUstreamCaptureMode: the thread's own
};

// For the calling thread, until it ends; nested ones are fine. Throws Error(io).
class CudaScope {
 public:
  explicit CudaScope(const CudaContext& context);
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;
  ~CudaScope();

 private:
  bool entered_ = false;   // the thread is the library's, and on the device for good
  bool selected_ = false;  // another context was current
  CUctx_st* previous_ = nullptr;
  std::optional<RelaxedCapture> relaxed_;
};

// For destructors: nobody can do anything about an error there (the process ends, the device is lost, a
// forked child).
template <class Body>
void quietly(const CudaContext& context, const Body& body) noexcept {
  try {
    const CudaScope scope(context);
    body();
  } catch (...) {
  }
}

}  // namespace shard
