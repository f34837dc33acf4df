#include "cuda/kernels/frame_faults.hpp"

#include "cuda/kernels/launch.cuh"

namespace shard {

namespace {

__global__ void report_faults(const std::uint32_t* faults, const std::uint32_t* rows, std::uint32_t count,
                              std::uint32_t* broken) {
  const std::uint32_t i = blockIdx.x * gpu::kThreads + threadIdx.x;
  if (i < count && faults[i] != 0) broken[rows[i]] = 1;
}

}  // namespace

void launch_frame_faults(const std::uint32_t* faults, const std::uint32_t* rows, std::uint32_t count,
                         std::uint32_t* broken, cudaStream_t stream) {
  if (count == 0) return;
  report_faults<<<(count + gpu::kThreads - 1) / gpu::kThreads, gpu::kThreads, 0, stream>>>(faults, rows,
                                                                                           count, broken);
  gpu::check_launch("the verdict on JPEG frames");
}

}  // namespace shard
