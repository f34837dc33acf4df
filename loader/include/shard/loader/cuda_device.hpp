// The CUDA device (library shard::loader_cuda).
#pragma once

#include <cstdint>
#include <memory>

#include "shard/loader/device.hpp"
#include "shard/loader/stream.hpp"

namespace shard {

// Device `ordinal` of this process, as CUDA numbers them. It may be used from any thread and leaves the
// thread's current device as it was; a context is made on this device and on no other. Errors: unsupported
// (no driver, an old driver, no device), invalid_argument (ordinal), io.
std::shared_ptr<Device> make_cuda_device(int ordinal = 0);

// 0 when there is none or no driver. Never throws.
int cuda_device_count() noexcept;

// A cudaStream_t, for Batch::wait_on. Null, which is CUDA's default stream, is the legacy default stream; so
// is cudaStreamPerThread, for it is another stream in each thread and the legacy one is ordered with all of
// them. Needs no CUDA to be compiled.
inline StreamRef cuda_stream(CUstream_st* stream) noexcept {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  constexpr std::uintptr_t kLegacy = 1;     // cudaStreamLegacy
  constexpr std::uintptr_t kPerThread = 2;  // cudaStreamPerThread
  StreamRef ref;
  ref.cuda_ = handle == 0 || handle == kPerThread ? reinterpret_cast<CUstream_st*>(kLegacy) : stream;
  return ref;
}

}  // namespace shard
