// The driver's call that queues many copies at once, looked up at run time: it came with CUDA 12.8 and lost a
// parameter with CUDA 13. A driver without it leaves the copies to a kernel.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "shard/loader/device.hpp"

namespace shard {

// How a device's streams copy many ranges of host memory.
enum class CopyMethod {
  driver,      // cuMemcpyBatchAsync as of CUDA 12.8
  driver_13,   // cuMemcpyBatchAsync as of CUDA 13.0
  kernel,      // a kernel reads pinned and registered memory over the link
  one_by_one,  // cudaMemcpyAsync for each range
};

struct ChosenCopy {
  CopyMethod method = CopyMethod::one_by_one;
  // Why it is not the driver's call; empty where it is.
  std::string reason;
};

// The best method that the driver and the device have. `kernels_read_host`: kernels of the device read
// registered memory at the host's addresses. The environment variable SHARD_CUDA_COPY (driver, driver-13,
// kernel, one-by-one) asks for another one. Errors: invalid_argument (the variable's value), unsupported
// (what it asks for is not there).
ChosenCopy choose_copy(bool kernels_read_host);

// The arrays that the driver's call takes; used again from call to call.
class BatchedCopy {
 public:
  // `method`: driver or driver_13, from choose_copy().
  explicit BatchedCopy(CopyMethod method) : method_(method) {}
  // Queues copies between host and device memory on a stream of the current device. The items are read before
  // it returns. Throws Error(io).
  void queue(std::span<const CopyItem> items, cudaStream_t stream);

 private:
  CopyMethod method_;
  std::vector<unsigned long long> targets_;
  std::vector<unsigned long long> sources_;
  std::vector<std::size_t> sizes_;
};

}  // namespace shard
