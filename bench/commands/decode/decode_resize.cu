#include "commands/decode/decode_resize.hpp"

#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>

namespace shard::bench {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kBlocks = 48;  // of an image

// The source positions that output `x` of `out` sees, as Pillow's precompute_coeffs finds them.
struct Taps {
  float center;
  float inverse;  // of the filter's stretch
  int first;
  int end;
};

__host__ __device__ Taps taps_of(std::uint32_t source, std::uint32_t out, std::uint32_t x) {
  const float scale = static_cast<float>(source) / static_cast<float>(out);
  const float support = scale > 1.0F ? scale : 1.0F;
  const float center = (static_cast<float>(x) + 0.5F) * scale;
  const int low = static_cast<int>(center - support + 0.5F);
  const int high = static_cast<int>(center + support + 0.5F);
  return {center, 1.0F / support, low > 0 ? low : 0,
          high < static_cast<int>(source) ? high : static_cast<int>(source)};
}

__device__ float weight_of(const Taps& taps, int at) {
  const float away = fabsf((static_cast<float>(at) + 0.5F - taps.center) * taps.inverse);
  return away < 1.0F ? 1.0F - away : 0.0F;
}

__device__ std::uint8_t rounded(float value) {
  return static_cast<std::uint8_t>(fminf(fmaxf(value + 0.5F, 0.0F), 255.0F));
}

// One thread, one pixel; threads follow the rows.
__global__ void __launch_bounds__(kThreads) resize_columns(const ResizeLaunch launch) {
  const ResizeRecord record = launch.records[blockIdx.y];
  const std::uint32_t pixels = record.count * launch.crop;
  for (std::uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < pixels; i += gridDim.x * kThreads) {
    const std::uint32_t y = i / launch.crop;
    const std::uint32_t x = i - y * launch.crop;
    const Taps taps = taps_of(record.width, record.resized_width, record.left + x);
    const std::uint8_t* const row = record.source + (record.first + y) * record.pitch;
    float total = 0;
    float sums[3] = {0, 0, 0};
    for (int at = taps.first; at < taps.end; ++at) {
      const float weight = weight_of(taps, at);
      total += weight;
      for (int c = 0; c < 3; ++c) sums[c] += weight * static_cast<float>(row[at * 3 + c]);
    }
    for (int c = 0; c < 3; ++c) record.rows[std::uint64_t{i} * 3 + c] = rounded(sums[c] / total);
  }
}

__global__ void __launch_bounds__(kThreads) resize_rows(const ResizeLaunch launch) {
  const ResizeRecord record = launch.records[blockIdx.y];
  const std::uint32_t plane = launch.crop * launch.crop;
  const std::uint32_t pitch = launch.crop * 3;
  std::uint16_t* const target = launch.target + std::uint64_t{blockIdx.y} * 3 * plane;
  for (std::uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < plane; i += gridDim.x * kThreads) {
    const std::uint32_t y = i / launch.crop;
    const std::uint32_t x = i - y * launch.crop;
    const Taps taps = taps_of(record.height, record.resized_height, record.top + y);
    float total = 0;
    float sums[3] = {0, 0, 0};
    for (int at = taps.first; at < taps.end; ++at) {
      const int row = at - static_cast<int>(record.first);
      if (row < 0 || row >= static_cast<int>(record.count)) continue;
      const float weight = weight_of(taps, at);
      const std::uint8_t* const pixel =
          record.rows + std::uint64_t{static_cast<std::uint32_t>(row)} * pitch + x * 3;
      total += weight;
      for (int c = 0; c < 3; ++c) sums[c] += weight * static_cast<float>(pixel[c]);
    }
    for (int c = 0; c < 3; ++c) {
      const float byte = static_cast<float>(rounded(sums[c] / total));
      const float value = __fdiv_rn(__fsub_rn(__fdiv_rn(byte, 255.0F), launch.mean[c]), launch.std[c]);
      target[c * plane + i] = __half_as_ushort(__float2half_rn(value));
    }
  }
}

}  // namespace

void set_needed_rows(ResizeRecord& record, std::uint32_t crop) {
  const Taps top = taps_of(record.height, record.resized_height, record.top);
  const Taps bottom = taps_of(record.height, record.resized_height, record.top + crop - 1);
  // One more at both ends: host and device may round a bound differently.
  record.first = static_cast<std::uint32_t>(std::max(top.first - 1, 0));
  record.count = std::min(static_cast<std::uint32_t>(bottom.end) + 1, record.height) - record.first;
}

cudaError_t launch_resize_normalise(const ResizeLaunch& launch, cudaStream_t stream) {
  if (launch.images == 0) return cudaSuccess;
  const dim3 grid(kBlocks, launch.images);
  resize_columns<<<grid, kThreads, 0, stream>>>(launch);
  resize_rows<<<grid, kThreads, 0, stream>>>(launch);
  return cudaGetLastError();
}

}  // namespace shard::bench
