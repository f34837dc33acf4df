// The CUDA device (library shard::loader_cuda).
#pragma once

#include <cstdint>
#include <memory>

#include "shard/error.hpp"
#include "shard/loader/device.hpp"
#include "shard/loader/stream.hpp"

namespace shard {

// Device `ordinal` of this process, in CUDA's numbering. Any thread may use it. It does not change the
// thread's current device, and it creates a context on this device only. Errors: unsupported (no driver, an
// old driver, no device), invalid_argument (ordinal), io.
std::shared_ptr<Device> make_cuda_device(int ordinal = 0);

// 0 if there is no device or no driver. Never throws.
int cuda_device_count() noexcept;

// A cudaStream_t for Batch::wait_on. Null, CUDA's default stream, stands for the legacy default stream. So
// does cudaStreamPerThread, which is another stream in each thread: the legacy stream is ordered with all of
// them. This function compiles without CUDA.
inline StreamRef cuda_stream(CUstream_st* stream) noexcept {
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  constexpr std::uintptr_t kLegacy = 1;     // cudaStreamLegacy
  constexpr std::uintptr_t kPerThread = 2;  // cudaStreamPerThread
  StreamRef ref;
  ref.is_default_ = handle == 0 || handle == kLegacy || handle == kPerThread;
  ref.cuda_ = ref.is_default_ ? reinterpret_cast<CUstream_st*>(kLegacy) : stream;
  return ref;
}

}  // namespace shard
