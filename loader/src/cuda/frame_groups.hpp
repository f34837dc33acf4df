// Which frames of codec jpeg of a work are decoded at a time, so that they take no more than its workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/jpeg_workspace.hpp"
#include "cuda/kernels/jpeg.hpp"
#include "shard/loader/transform.hpp"

namespace shard {

// Frames, or bands of them, and the row of the work that each belongs to.
struct FrameGroup {
  std::vector<gpu::JpegSource> sources;
  std::vector<std::uint32_t> rows;
};

// Goes through the frames of a work once. Keeps its memory from work to work.
class FrameGroups {
 public:
  // `places`: where the sample of each row is decoded to. Both must stay valid. Errors: invalid_argument.
  void start(const TransformWork& work, std::span<const std::byte* const> places);
  // False: there is none left.
  bool next(FrameGroup& group);

 private:
  const TransformWork* work_ = nullptr;
  std::span<const std::byte* const> places_;
  std::size_t row_ = 0;          // the next one, whose bands come next
  std::vector<JpegBand> bands_;  // of the last row
  std::size_t band_ = 0;         // the next one
};

}  // namespace shard
