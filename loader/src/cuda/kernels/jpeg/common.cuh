// What the kernels of jpeg.hpp have in common.
#pragma once

#include "cuda/kernels/jpeg/image.hpp"

namespace shard::gpu {

constexpr std::uint32_t kLanesOfWarp = 32;
constexpr std::uint32_t kAllLanes = 0xFFFFFFFFU;

// A file in device memory, byte by byte.
class DeviceBytes {
 public:
  explicit __device__ DeviceBytes(const std::byte* file)
      : file_(reinterpret_cast<const std::uint8_t*>(file)) {}
  __device__ std::uint32_t byte(std::uint32_t i) const { return file_[i]; }

 private:
  const std::uint8_t* file_;
};

// The image of this block of a kernel. The lanes of a warp look at 32 images at a time.
__device__ inline std::uint32_t image_of_block(const JpegGroups& groups, std::uint32_t images) {
  const std::uint32_t lane = threadIdx.x % kLanesOfWarp;
  std::uint32_t low = 0;
  std::uint32_t high = images;
  while (high - low > 1) {
    const std::uint32_t step = (high - low + kLanesOfWarp - 1) / kLanesOfWarp;
    const std::uint32_t mine = low + lane * step;
    const bool begun = mine < high && groups.first[mine] <= blockIdx.x;
    const std::uint32_t count = static_cast<std::uint32_t>(__popc(__ballot_sync(kAllLanes, begun)));
    low += (count - 1) * step;
    high = low + step < high ? low + step : high;
  }
  return low;
}

}  // namespace shard::gpu
