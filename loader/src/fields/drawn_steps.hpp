// What was drawn for one view of a batch, for the targets that follow it.
#pragma once

#include <cstdint>
#include <span>

#include "shard/loader/transform.hpp"

namespace shard {

// Borrowed. By row of the batch; steps as in TargetWork.
struct DrawnSteps {
  std::span<const SampleCrop> crops;
  std::span<const Instruction> steps;
  std::span<const std::uint32_t> begins;
  // Of the view, in this batch.
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  // TransformOptions::padded: steps are those of each sample's own rows and columns (Geometry).
  bool padded = false;
};

}  // namespace shard
