// From faults of decoded images to the verdict on the rows of a work.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace shard {

// Sets broken[rows[i]] to 1 for each i below `count` whose fault is not 0. `faults` and `rows`: device memory;
// `broken`: memory that the device can address. Errors: io (CUDA's message).
void launch_frame_faults(const std::uint32_t* faults, const std::uint32_t* rows, std::uint32_t count,
                         std::uint32_t* broken, cudaStream_t stream);

}  // namespace shard
