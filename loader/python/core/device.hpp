// The device that a program asks for.
#pragma once

#include <algorithm>
#include <memory>

#include "base/system/cpu_count.hpp"
#include "shard/error.hpp"
#include "shard/loader/device.hpp"
#ifdef SHARD_PYTHON_CUDA
#include "shard/loader/cuda_device.hpp"
#endif

namespace shard::python {

// Ordinal of "cuda:N"; below 0: the host. `threads`: of the host device; 0: as many as there are, at most 8.
inline std::shared_ptr<Device> make_device(int ordinal, unsigned threads) {
  if (ordinal < 0) return make_host_device(threads != 0 ? std::min(threads, 64U) : std::min(cpu_count(), 8U));
#ifdef SHARD_PYTHON_CUDA
  return make_cuda_device(ordinal);
#else
  throw Error(
      ErrorCode::unsupported,
      "this build of shardloader has no CUDA: install it again where a CUDA compiler is found (CUDACXX, "
      "or nvcc in PATH)");
#endif
}

}  // namespace shard::python
