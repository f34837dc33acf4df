// How threads get into CUDA: on the loader's device, without a context on any other one, and without breaking
// the CUDA graph that somebody captures meanwhile.
//
//   a thread of the library      enter_cuda(context)      once, when it starts
//   a thread of the user         CudaScope                around each call
//
// Both make the device's primary context current by the driver's cuCtxSetCurrent: cudaSetDevice would change
// what the user's thread has selected, and would make a context on the device that is put back. Both relax
// the thread's stream-capture mode: while any thread captures in mode global (the default), CUDA refuses
// calls such as cudaHostAlloc and cudaEventQuery on every thread whose mode is not relaxed, and the capture
// is lost.
#pragma once

#include <driver_types.h>

#include <optional>

struct CUctx_st;

namespace shard {

// Throws Error(io) for a failed call; clears the error that CUDA keeps for the thread, so that it does not
// surface elsewhere.
void check_cuda(cudaError_t error, const char* what);

// A device's primary context. A value; valid until the process ends.
struct CudaContext {
  int ordinal = 0;
  CUctx_st* handle = nullptr;
};

// Starts the device if nobody did, on a thread of its own: the caller's is left as it was. Errors:
// unsupported (the driver lacks a function), resource (no thread), io.
CudaContext start_cuda(int ordinal);

// For a thread that the library started, as the first thing on it. Throws Error(io).
void enter_cuda(const CudaContext& context);

// The calling thread's stream-capture mode is relaxed until this ends. By the driver: the runtime might start
// a device for it. Throws Error(unsupported).
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

// For destructors: what fails then (the process ends, the device is lost, a forked child) is nobody's to
// mend.
template <class Body>
void quietly(const CudaContext& context, const Body& body) noexcept {
  try {
    const CudaScope scope(context);
    body();
  } catch (...) {
  }
}

}  // namespace shard
