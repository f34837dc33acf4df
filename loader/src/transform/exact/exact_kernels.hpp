// The inner loops of an exact resize, chosen at run time for the CPU. All give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transform/exact/exact_plan.hpp"

namespace shard {

struct ExactKernels {
  // Rows of the box (plan.reach bytes readable from each) -> resized rows, of plan.out_bytes() each. `soon`:
  // as many rows that are likely to be read next, brought to the cache meanwhile; never read by the call.
  void (*columns)(const ExactColumns& plan, const std::uint8_t* const* rows, const std::uint8_t* const* soon,
                  std::size_t count, std::uint8_t* const* outs);
  // Weighted sum of 2 * pairs rows of n bytes -> n bytes. 1 <= pairs.
  void (*rows)(const std::uint8_t* const* rows, const ExactPair* weights, std::size_t pairs, std::size_t n,
               std::uint8_t* out);
};

// The best for this CPU.
ExactKernels exact_kernels();
// Plain loops.
ExactKernels scalar_exact_kernels();

}  // namespace shard
