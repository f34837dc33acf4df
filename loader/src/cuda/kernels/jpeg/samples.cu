// A thread per block of 8 x 8: coefficients -> samples, in the planes of the window's components.
#include "cuda/kernels/jpeg/common.cuh"
#include "jpeg/idct.hpp"

namespace shard::gpu {
namespace {

__global__ void __launch_bounds__(kJpegBlocks) make_samples(JpegLaunch launch) {
  alignas(16) __shared__ std::uint16_t quantization[jpeg::kMostComponents][jpeg::kBlockValues];
  const std::uint32_t number = image_of_block(launch.blocks, launch.count);
  const JpegImage& image = launch.images[number];
  if (image.usable == 0) return;
  for (std::uint32_t i = threadIdx.x; i < jpeg::kMostComponents * jpeg::kBlockValues; i += kJpegBlocks)
    quantization[i / jpeg::kBlockValues][i % jpeg::kBlockValues] =
        image.quantization[i / jpeg::kBlockValues][i % jpeg::kBlockValues];
  __syncthreads();
  const std::uint32_t line = (blockIdx.x - launch.blocks.first[number]) * kJpegBlocks + threadIdx.x;
  if (line >= image.plan.first_line[jpeg::kMostComponents]) return;
  std::uint32_t component = 0;
  while (line >= image.plan.first_line[component + 1]) ++component;
  const std::uint64_t first_line = launch.tasks[number].first_line;
  alignas(16) std::int16_t coefficients[jpeg::kBlockValues];
  alignas(16) std::uint16_t factors[jpeg::kBlockValues];
  const auto* from =
      reinterpret_cast<const uint4*>(launch.coefficients + (first_line + line) * jpeg::kBlockValues);
#pragma unroll
  for (std::uint32_t i = 0; i < jpeg::kBlockValues / 8; ++i)
    reinterpret_cast<uint4*>(coefficients)[i] = from[i];
#pragma unroll
  for (std::uint32_t i = 0; i < jpeg::kBlockValues / 8; ++i)
    reinterpret_cast<uint4*>(factors)[i] = reinterpret_cast<const uint4*>(quantization[component])[i];
  alignas(8) std::uint8_t samples[jpeg::kBlockValues];
  jpeg::inverse_dct(coefficients, factors, samples, jpeg::kBlockSide);
  const std::uint32_t columns = image.planes[component].stride / jpeg::kBlockSide;
  const std::uint32_t block = line - image.plan.first_line[component];
  std::uint8_t* const plane =
      launch.samples + (first_line + image.plan.first_line[component]) * jpeg::kBlockValues;
  std::uint8_t* const target =
      plane +
      (std::size_t{block / columns} * columns * jpeg::kBlockSide + block % columns) * jpeg::kBlockSide;
#pragma unroll
  for (std::uint32_t y = 0; y < jpeg::kBlockSide; ++y)
    *reinterpret_cast<uint2*>(target + std::size_t{y} * columns * jpeg::kBlockSide) =
        reinterpret_cast<const uint2*>(samples)[y];
}

}  // namespace

void launch_jpeg_samples(const JpegLaunch& launch, cudaStream_t stream) {
  make_samples<<<launch.blocks.count, kJpegBlocks, 0, stream>>>(launch);
}

}  // namespace shard::gpu
