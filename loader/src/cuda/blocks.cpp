#include "cuda/blocks.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "shard/error.hpp"

namespace shard {

PinnedBlock::PinnedBlock(const CudaContext& context, std::uint64_t size) : context_(context), size_(size) {
  const CudaScope scope(context);
  const cudaError_t error = cudaHostAlloc(&data_, size, cudaHostAllocPortable);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw Error(
        ErrorCode::resource,
        fmt::format("{} bytes of pinned memory were refused; lower pinned_bytes, batch_size or prefetch",
                    size));
  }
  check_cuda(error, "cudaHostAlloc");
}
PinnedBlock::~PinnedBlock() {
  quietly(context_, [&] { cudaFreeHost(data_); });
}

DeviceBlock::DeviceBlock(const CudaContext& context, std::uint64_t size) : context_(context), size_(size) {
  const CudaScope scope(context);
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
  check_cuda(error, "cudaMalloc");
}
DeviceBlock::~DeviceBlock() {
  quietly(context_, [&] { cudaFree(data_); });
}

}  // namespace shard
