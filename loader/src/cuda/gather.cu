// Copies by kernels: of ranges of device memory, and of small ranges of pinned memory beside the copy engine.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "cuda/launch.cuh"
#include "cuda/transform.hpp"
#include "shard/error.hpp"

namespace shard {

namespace gpu {

void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();  // clears the thread's copy: it does not surface elsewhere
  if (error == cudaSuccess) return;
  throw Error(ErrorCode::io, std::string("CUDA: launch of ") + what + ": " + cudaGetErrorString(error) +
                                 " (" + cudaGetErrorName(error) + ")");
}

}  // namespace gpu

namespace {

using gpu::check_launch;
using gpu::kMaxGridY;
using gpu::kThreads;

constexpr std::uint32_t kGatherBlockBytes = 32 * 1024;

template <class Unit>
__device__ void copy_units(const CopyItem& item, std::uint64_t begin, std::uint64_t end) {
  const auto* source = reinterpret_cast<const Unit*>(item.source);
  auto* target = reinterpret_cast<Unit*>(item.target);
  for (std::uint64_t i = begin / sizeof(Unit) + threadIdx.x; i < end / sizeof(Unit); i += kThreads)
    target[i] = source[i];
  const std::uint64_t rest = end / sizeof(Unit) * sizeof(Unit);  // of the last block: less than a unit
  if (rest + threadIdx.x < end) item.target[rest + threadIdx.x] = item.source[rest + threadIdx.x];
}

__global__ void __launch_bounds__(kThreads) gather_items(const CopyItem* items, std::uint32_t count) {
  for (std::uint32_t i = blockIdx.y; i < count; i += gridDim.y) {
    const CopyItem item = items[i];
    const auto both =
        reinterpret_cast<std::uintptr_t>(item.source) | reinterpret_cast<std::uintptr_t>(item.target);
    for (std::uint64_t begin = std::uint64_t{blockIdx.x} * kGatherBlockBytes; begin < item.size_bytes;
         begin += std::uint64_t{gridDim.x} * kGatherBlockBytes) {
      const std::uint64_t end = min(begin + kGatherBlockBytes, item.size_bytes);
      if (both % 16 == 0)
        copy_units<uint4>(item, begin, end);
      else if (both % 4 == 0)
        copy_units<std::uint32_t>(item, begin, end);
      else
        copy_units<std::uint8_t>(item, begin, end);
    }
  }
}

// Parameters from pinned memory by a kernel that reads them over the link: a copy would queue behind the
// batches in the copy engine, and the transform with it.
__global__ void __launch_bounds__(kThreads)
    upload_words(uint4* target, const uint4* source, std::uint32_t words) {
  for (std::uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < words; i += gridDim.x * kThreads)
    target[i] = source[i];
}

void upload(std::byte* device, const std::byte* pinned, std::size_t bytes, cudaStream_t stream) {
  const auto words = static_cast<std::uint32_t>((bytes + 15) / 16);
  upload_words<<<(words + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
      reinterpret_cast<uint4*>(device), reinterpret_cast<const uint4*>(pinned), words);
  check_launch("an upload");
}

}  // namespace

void launch_upload(const CopyItem& item, cudaStream_t stream) {
  if (item.size_bytes > 0) upload(item.target, item.source, item.size_bytes, stream);
}

std::size_t gather_scratch_bytes(std::size_t items) noexcept {
  return (items * sizeof(CopyItem) + 15) / 16 * 16;
}

void launch_gather(std::span<const CopyItem> items, std::byte* pinned, std::byte* device,
                   cudaStream_t stream) {
  if (items.empty()) return;
  std::uint64_t largest = 1;
  for (const CopyItem& item : items) largest = std::max(largest, item.size_bytes);
  std::memcpy(pinned, items.data(), items.size_bytes());
  upload(device, pinned, items.size_bytes(), stream);
  const auto blocks = static_cast<unsigned>(
      std::min<std::uint64_t>((largest + kGatherBlockBytes - 1) / kGatherBlockBytes, 1U << 20U));
  const dim3 grid(blocks, static_cast<unsigned>(std::min<std::size_t>(items.size(), kMaxGridY)));
  gather_items<<<grid, kThreads, 0, stream>>>(reinterpret_cast<const CopyItem*>(device),
                                              static_cast<std::uint32_t>(items.size()));
  check_launch("a gather");
}

}  // namespace shard
