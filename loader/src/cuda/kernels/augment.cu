// Programs of augmentation as a kernel: a block executes the program of its sample, instruction by
// instruction, with a barrier between them. Pixels stay in the L2 cache meanwhile. Same bits as the host's
// Interpreter, by the same functions.
//
// Built without contraction of floating-point expressions (see CMakeLists.txt).
#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/augment.cuh"
#include "cuda/kernels/augment/blur.cuh"
#include "cuda/kernels/augment/neighbours.cuh"
#include "cuda/kernels/augment/pixels.cuh"
#include "cuda/kernels/augment/tables.cuh"

namespace shard::gpu {

namespace {

__device__ void execute(Block& block, const Step& instruction) {
  if (is_table(instruction.opcode)) return add_table(block, instruction);
  apply_tables(block);
  switch (instruction.opcode) {
    case Opcode::saturation:
    case Opcode::hue:
    case Opcode::grayscale:
      change_colors(block, instruction);
      break;
    case Opcode::permute:
      permute(block, instruction);
      break;
    case Opcode::drop_channels:
      drop_channels(block, instruction);
      break;
    case Opcode::sharpness:
      sharpen(block, instruction.real[0]);
      break;
    case Opcode::blur:
      blur(block, instruction);
      break;
    case Opcode::affine:
    case Opcode::perspective:
      move(block, instruction);
      break;
    case Opcode::flip_rows:
    case Opcode::quarter_turns:
    case Opcode::shift:
      rearrange(block, instruction);
      break;
    case Opcode::erase:
    case Opcode::erase_noise:
      erase(block, instruction);
      break;
    default:
      mix(block, instruction);
      break;
  }
  if (swaps(instruction.opcode)) swap(block);
}

__global__ void __launch_bounds__(kAugmentThreads, kAugmentBlocks) run_programs(AugmentLaunch launch) {
  __shared__ Shared shared;
  for (std::uint32_t sample = blockIdx.x; sample < launch.samples; sample += gridDim.x) {
    Block block{};
    block.channels = launch.channels;
    OwnPixels own{launch.height, launch.width, sample};
    if (launch.own != nullptr) own = launch.own[sample];
    block.height = static_cast<std::int32_t>(own.height);
    block.width = static_cast<std::int32_t>(own.width);
    block.pixels = own.height * own.width;
    block.values = block.pixels * launch.channels;
    const std::size_t at = std::size_t{own.first} * launch.height * launch.width * launch.channels;
    block.now = launch.pixels + at;
    block.other = launch.other + at;
    block.copy = launch.copies == nullptr ? nullptr : launch.copies + at;
    block.sum = launch.sums == nullptr ? nullptr : launch.sums + at;
    block.shared = &shared;
    reset_tables(block);
    const std::uint32_t end = launch.begins[sample + 1];
    for (std::uint32_t i = launch.begins[sample]; i < end; ++i) {
      constexpr unsigned kWords = sizeof(Instruction) / 4;
      if (threadIdx.x < kWords)
        reinterpret_cast<std::uint32_t*>(&shared.instruction)[threadIdx.x] =
            reinterpret_cast<const std::uint32_t*>(launch.instructions + i)[threadIdx.x];
      __syncthreads();
      execute(block, shared.instruction);
      __syncthreads();
    }
    apply_tables(block);
    __syncthreads();
  }
}

}  // namespace

void launch_augment(const AugmentLaunch& launch, cudaStream_t stream) {
  run_programs<<<launch.samples, kAugmentThreads, 0, stream>>>(launch);
}

}  // namespace shard::gpu
