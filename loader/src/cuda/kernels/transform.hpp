// The transform and the gather of resident samples as CUDA kernels. Same bits as the host's transform_rows().
//
// One small kernel copies the parameters of a launch (sources, boxes, tables) to the device. For this the
// caller lends *_scratch_bytes() of pinned memory, which must not change until the stream has passed the
// launch, and as many of device memory, which other streams must not use meanwhile. Both are 16-byte aligned.
// Nothing is allocated, and nothing waits.
//
// Errors: invalid_argument (a box outside its sample, ...; nothing is queued then), io (CUDA's message).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "shard/loader/device.hpp"

namespace shard {

// Copies pinned host memory to the device by a kernel that reads it over the link. Rounds the size up to 16
// bytes; both 16-byte aligned. `other`: a second range, in the same kernel.
void launch_upload(const CopyItem& item, cudaStream_t stream, const CopyItem& other = {});

// The most ranges that one launch_copy_pinned() takes.
inline constexpr std::size_t kPinnedItems = 128;
// Copies ranges of host memory that the device can address, by one kernel that reads them over the link.
// items: 1 to kPinnedItems.
void launch_copy_pinned(std::span<const CopyItem> items, cudaStream_t stream);

std::size_t transform_scratch_bytes(const TransformWork& work) noexcept;
// What a transform's launch may share with others.
struct TransformLaunch {
  // The result of the last launch_transform() with these scratches; false if they were used otherwise since.
  bool tables_there = false;
  // Goes to the device with the parameters, in the same kernel (launch_upload).
  CopyItem upload{};
  // Pixels for programs that see each sample at its own size (augment::own_sizes()): where each begins, in
  // samples of `delivered`. Else empty.
  std::span<const std::uint32_t> units{};
};
// work.sources and work.target: memory that the device can address. True: both scratches hold tables of
// values, which a launch with the same ones need not bring again.
bool launch_transform(const TransformWork& work, std::byte* pinned, std::byte* device, cudaStream_t stream,
                      const TransformLaunch& with = {});

// The same for a work with programs (TransformWork::begins); launch_transform() calls it.
// `upload`: as in TransformLaunch.
std::size_t augmented_scratch_bytes(const TransformWork& work) noexcept;
void launch_augmented(const TransformWork& work, std::byte* pinned, std::byte* device, cudaStream_t stream,
                      const CopyItem& upload);

// Mixes the pairs of a transform that was queued before (TransformWork::pairs), if there are any.
// Scratches as above.
std::size_t mix_scratch_bytes(const TransformWork& work) noexcept;
void launch_mix(const TransformWork& work, std::byte* pinned, std::byte* device, cudaStream_t stream);

// The most ranges that one launch_copy_large() takes.
inline constexpr std::size_t kLargeItems = 512;
// The same for ranges of any size, of up to 64 TiB, in place of the copy engine. items: 1 to kLargeItems.
void launch_copy_large(std::span<const CopyItem> items, cudaStream_t stream);

// Whether the current device can run the library's kernels.
bool kernels_run_here();

std::size_t gather_scratch_bytes(std::size_t items) noexcept;
// Copies ranges of device memory; fastest where sources and targets are 16-byte aligned.
void launch_gather(std::span<const CopyItem> items, std::byte* pinned, std::byte* device,
                   cudaStream_t stream);

}  // namespace shard
