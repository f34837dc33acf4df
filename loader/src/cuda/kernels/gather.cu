// Copies by kernels: of ranges of device memory, and of small ranges of pinned memory beside the copy engine.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/transform.hpp"
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

__device__ void copy_items(const CopyItem* items, std::uint32_t count) {
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

__global__ void __launch_bounds__(kThreads) gather_items(const CopyItem* items, std::uint32_t count) {
  copy_items(items, count);
}

struct Words {
  uint4* target;
  const uint4* source;
  std::uint32_t count;
};

Words words_of(const CopyItem& item) {
  return {reinterpret_cast<uint4*>(item.target), reinterpret_cast<const uint4*>(item.source),
          static_cast<std::uint32_t>((item.size_bytes + 15) / 16)};
}

// Copies parameters from pinned memory by a kernel that reads them over the link. A copy would wait in the
// copy engine for the batches before it, and the transform would wait with it.
__global__ void __launch_bounds__(kThreads) upload_words(Words first, Words second) {
  for (std::uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < first.count + second.count;
       i += gridDim.x * kThreads) {
    if (i < first.count)
      first.target[i] = first.source[i];
    else
      second.target[i - first.count] = second.source[i - first.count];
  }
}

struct PinnedItems {
  CopyItem items[kPinnedItems];
};
static_assert(sizeof(PinnedItems) <= 4000);  // parameters of a kernel have 4 KiB

// The target is read again on the device at once, so it should stay in the L2 cache.
__global__ void __launch_bounds__(kThreads)
    copy_pinned(const __grid_constant__ PinnedItems pinned, std::uint32_t count) {
  copy_items(pinned.items, count);
}

struct LargeItems {
  CopyItem items[kLargeItems];
};
// Parameters of a kernel: 4 KiB before CUDA 12.1, 32 KiB since, on every GPU that is built for.
static_assert(sizeof(LargeItems) <= 16 * 1024);

constexpr std::uint32_t kLargeChunkBytes = 16 * 1024;
constexpr unsigned kLargeBlocks = 128;  // that the link is busy with fewer than all multiprocessors
constexpr std::uint32_t kLoads = 4;     // of a thread that are under way at once

__device__ void copy_chunk(const CopyItem& item, std::uint64_t begin, std::uint64_t end) {
  const auto* const source = reinterpret_cast<const uint4*>(item.source);
  auto* const target = reinterpret_cast<uint4*>(item.target);
  std::uint64_t at = begin / 16 + threadIdx.x;
  for (; at + (kLoads - 1) * kThreads < end / 16; at += kLoads * kThreads) {
    uint4 words[kLoads];
#pragma unroll
    for (std::uint32_t i = 0; i < kLoads; ++i) words[i] = __ldcs(source + at + i * kThreads);
#pragma unroll
    for (std::uint32_t i = 0; i < kLoads; ++i) __stcs(target + at + i * kThreads, words[i]);
  }
  for (; at < end / 16; at += kThreads) __stcs(target + at, __ldcs(source + at));
  const std::uint64_t rest = end / 16 * 16;
  if (rest + threadIdx.x < end) item.target[rest + threadIdx.x] = item.source[rest + threadIdx.x];
}

// In place of the copy engine. Chunks go to the blocks in turn, so that all end at about the same time. What
// is copied passes through the L2 cache (launch.cuh).
__global__ void __launch_bounds__(kThreads)
    copy_large(const __grid_constant__ LargeItems large, std::uint32_t count, std::uint32_t chunks) {
  for (std::uint64_t i = blockIdx.x; i < std::uint64_t{count} * chunks; i += gridDim.x) {
    const CopyItem item = large.items[i / chunks];
    const std::uint64_t begin = i % chunks * kLargeChunkBytes;
    const std::uint64_t end = min(begin + kLargeChunkBytes, item.size_bytes);
    if (begin >= end) continue;
    const auto both =
        reinterpret_cast<std::uintptr_t>(item.source) | reinterpret_cast<std::uintptr_t>(item.target);
    if (both % 16 == 0)
      copy_chunk(item, begin, end);
    else if (both % 4 == 0)
      copy_units<std::uint32_t>(item, begin, end);
    else
      copy_units<std::uint8_t>(item, begin, end);
  }
}

std::uint64_t largest_of(std::span<const CopyItem> items) {
  std::uint64_t largest = 1;
  for (const CopyItem& item : items) largest = std::max(largest, item.size_bytes);
  return largest;
}

unsigned blocks_of(std::span<const CopyItem> items) {
  return static_cast<unsigned>(
      std::min<std::uint64_t>((largest_of(items) + kGatherBlockBytes - 1) / kGatherBlockBytes, 1U << 20U));
}

}  // namespace

void launch_upload(const CopyItem& item, cudaStream_t stream, const CopyItem& other) {
  const Words first = words_of(item);
  const Words second = words_of(other);
  const std::uint32_t words = first.count + second.count;
  if (words == 0) return;
  upload_words<<<(words + kThreads - 1) / kThreads, kThreads, 0, stream>>>(first, second);
  check_launch("an upload");
}

void launch_copy_pinned(std::span<const CopyItem> items, cudaStream_t stream) {
  PinnedItems pinned;
  std::copy(items.begin(), items.end(), pinned.items);
  const dim3 grid(blocks_of(items), static_cast<unsigned>(items.size()));
  copy_pinned<<<grid, kThreads, 0, stream>>>(pinned, static_cast<std::uint32_t>(items.size()));
  check_launch("a copy of pinned memory");
}

void launch_copy_large(std::span<const CopyItem> items, cudaStream_t stream) {
  LargeItems large;
  std::copy(items.begin(), items.end(), large.items);
  const std::uint64_t chunks = (largest_of(items) + kLargeChunkBytes - 1) / kLargeChunkBytes;
  copy_large<<<kLargeBlocks, kThreads, 0, stream>>>(large, static_cast<std::uint32_t>(items.size()),
                                                    static_cast<std::uint32_t>(chunks));
  check_launch("a copy of pinned memory");
}

bool kernels_run_here() {
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, upload_words);
  cudaGetLastError();
  return error == cudaSuccess;
}

std::size_t gather_scratch_bytes(std::size_t items) noexcept {
  return (items * sizeof(CopyItem) + 15) / 16 * 16;
}

void launch_gather(std::span<const CopyItem> items, std::byte* pinned, std::byte* device,
                   cudaStream_t stream) {
  if (items.empty()) return;
  std::memcpy(pinned, items.data(), items.size_bytes());
  launch_upload({device, pinned, items.size_bytes()}, stream);
  const dim3 grid(blocks_of(items), static_cast<unsigned>(std::min<std::size_t>(items.size(), kMaxGridY)));
  gather_items<<<grid, kThreads, 0, stream>>>(reinterpret_cast<const CopyItem*>(device),
                                              static_cast<std::uint32_t>(items.size()));
  check_launch("a gather");
}

}  // namespace shard
