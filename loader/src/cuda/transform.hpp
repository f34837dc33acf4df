// The transform and the gather of resident samples as CUDA kernels. Same bits as the host's transform_rows().
//
// Parameters of a launch (sources, boxes, tables) go to the device by one small kernel: the caller lends
// *_scratch_bytes() of pinned memory, which stay untouched until the stream has passed the launch, and as
// many of device memory, 16-byte aligned both, which other streams do not use meanwhile. Nothing is allocated
// and nothing waits.
//
// Errors: invalid_argument (a box outside its sample, ...; nothing is queued then), io (CUDA's message).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "shard/loader/device.hpp"

namespace shard {

// Copies pinned host memory to the device by a kernel that reads it over the link. Rounds the size up to 16
// bytes; both 16-byte aligned.
void launch_upload(const CopyItem& item, cudaStream_t stream);

std::size_t transform_scratch_bytes(const TransformWork& work) noexcept;
// work.sources and work.target: memory that the device can address.
void launch_transform(const TransformWork& work, std::byte* pinned, std::byte* device, cudaStream_t stream);

std::size_t gather_scratch_bytes(std::size_t items) noexcept;
// Copies ranges of device memory; fastest where sources and targets are 16-byte aligned.
void launch_gather(std::span<const CopyItem> items, std::byte* pinned, std::byte* device,
                   cudaStream_t stream);

}  // namespace shard
