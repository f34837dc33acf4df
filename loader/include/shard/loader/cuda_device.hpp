// The CUDA device (library shard::loader_cuda).
#pragma once

#include <memory>

#include "shard/loader/device.hpp"

namespace shard {

// Device `ordinal` of this process. Native streams are cudaStream_t; null means that the host waits. Errors:
// unsupported (no driver, an old driver, no device), invalid_argument (ordinal), io.
std::shared_ptr<Device> make_cuda_device(int ordinal = 0);

// 0 when there is none or no driver. Never throws.
int cuda_device_count() noexcept;

}  // namespace shard
