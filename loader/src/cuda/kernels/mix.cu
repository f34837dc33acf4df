// Mixup and cutmix over pairs of a delivered batch. Same bits as the host's mix_pairs(). Built without
// contraction of floating-point expressions (see CMakeLists.txt).
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>

#include "cuda/kernels/elements.cuh"
#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/transform.hpp"
#include "transform/augment/mix.hpp"
#include "transform/augment/mix_math.hpp"

namespace shard {

namespace {

using augment::MixShape;

// blockIdx.y: the pair.
template <class Type>
__global__ void mix_batch(const MixPair* pairs, std::uint32_t count, std::byte* target,
                          std::uint64_t elements, MixShape shape) {
  using Stored = typename Type::Stored;
  for (std::uint32_t number = blockIdx.y; number < count; number += gridDim.y) {
    const MixPair pair = pairs[number];
    const bool mixup = augment::is_mixup(pair);
    if (mixup && pair.share == 1.0F) continue;
    auto* const a = reinterpret_cast<Stored*>(target) + 2 * std::uint64_t{number} * elements;
    Stored* const b = a + elements;
    for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < elements;
         i += std::uint64_t{gridDim.x} * blockDim.x) {
      if (mixup) {
        const float x = Type::load(a[i]);
        const float y = Type::load(b[i]);
        a[i] = Type::store(augment::mixed(x, y, pair.share));
        b[i] = Type::store(augment::mixed(y, x, pair.share));
      } else if (augment::in_box(pair, shape.column(i), shape.row(i))) {
        const Stored kept = a[i];
        a[i] = b[i];
        b[i] = kept;
      }
    }
  }
}

}  // namespace

// Whole words of 16 bytes, as launch_upload() copies them.
std::size_t mix_scratch_bytes(const TransformWork& work) noexcept {
  return (work.pairs.size_bytes() + 15) / 16 * 16;
}

void launch_mix(const TransformWork& work, std::byte* pinned, std::byte* device, cudaStream_t stream) {
  if (work.pairs.empty()) return;
  augment::check_pairs(work);
  std::memcpy(pinned, work.pairs.data(), work.pairs.size_bytes());
  launch_upload({device, pinned, work.pairs.size_bytes()}, stream);
  const SampleSpec& spec = work.delivered;
  const MixShape shape{spec.width, spec.height, spec.layout == Layout::nhwc ? spec.channels : 1};
  const auto count = static_cast<std::uint32_t>(work.pairs.size());
  const dim3 grid = gpu::grid_of(spec.elements(), work.pairs.size());
  const auto* const pairs = reinterpret_cast<const MixPair*>(device);
  gpu::with_type(spec.dtype, [&](auto type) {
    mix_batch<decltype(type)>
        <<<grid, gpu::kThreads, 0, stream>>>(pairs, count, work.target, spec.elements(), shape);
  });
  gpu::check_launch("mixing");
}

}  // namespace shard
