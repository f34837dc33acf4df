// The inner loops of normalising, chosen at run time for the CPU. They may be used only if they give the same
// bits as ValueTable, for which RowWriter tries all 256 values of each channel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "shard/dataset_spec.hpp"

namespace shard::image {

// `width` pixels -> three planes of `width` elements.
struct NormalizeKernels {
  void (*planes_u8)(const std::uint8_t* rgb, std::size_t width,
                    const std::array<std::byte*, 3>& planes) = nullptr;
  // f32, f16 or bf16; null where the target has no fused multiply-add.
  void (*planes_float)(const std::uint8_t* rgb, std::size_t width, DType dtype,
                       const Normalization& normalization, const std::array<std::byte*, 3>& planes) = nullptr;
};
NormalizeKernels normalize_kernels();

}  // namespace shard::image
