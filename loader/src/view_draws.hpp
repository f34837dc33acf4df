// What was drawn for each view of a batch: crops and programs, and the steps of them that targets follow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "drawn_steps.hpp"
#include "loader_setup.hpp"

namespace shard {

// Of the batch in a slot. Its memory is used again for the next one.
class ViewDraws {
 public:
  // `draws`: BatchIndices::draws.
  void draw(const LoaderSetup& setup, std::uint64_t epoch, std::span<const std::uint64_t> draws);

  // Sets crops and programs of a transform.
  void describe(std::size_t view, TransformWork& work) const;
  // Of every view.
  std::vector<DrawnSteps> steps() const;

 private:
  // As in TransformWork and TargetWork.
  struct View {
    std::vector<SampleCrop> crops;
    std::vector<Instruction> instructions;
    std::vector<std::uint32_t> begins;
    std::vector<Instruction> steps;
    std::vector<std::uint32_t> step_begins;
  };
  std::vector<View> views_;
};

}  // namespace shard
