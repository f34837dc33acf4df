// Stream::follow() as CUDA kernels. Scratches and errors are those of transform.hpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "shard/loader/targets.hpp"

namespace shard {

std::size_t targets_scratch_bytes(const TargetWork& work) noexcept;
void launch_targets(const TargetWork& work, std::byte* pinned, std::byte* device, cudaStream_t stream);

}  // namespace shard
