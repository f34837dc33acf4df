// A stream of a CUDA device.
#pragma once

#include <memory>

#include "cuda/batched_copy.hpp"
#include "cuda/context.hpp"
#include "cuda/events.hpp"
#include "shard/loader/device.hpp"

namespace shard {

// `kernels_read_registered`: kernels read registered memory at the host's addresses. Throws Error(io).
std::unique_ptr<Stream> make_cuda_stream(const CudaContext& context, CopyMethod method,
                                         bool kernels_read_registered, std::shared_ptr<EventPool> events);

}  // namespace shard
