// An exact resize in float32 on the host (exact_filter.hpp), for samples that are not u8 of up to four
// channels: the rows of a view, one after the other.
//
//   rows of the box --(to float32; columns)--> ring of rows --(rows)--> view
//
// Built without contraction of floating-point expressions (see CMakeLists.txt).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/loader/transform.hpp"
#include "transform/exact/exact_plan.hpp"
#include "transform/float_kernels.hpp"

namespace shard {

// One plane of one sample at a time; keeps its memory. Not thread safe. Under a DefaultFloatEnvironment.
class ExactFloats {
 public:
  // What is resized, and to what.
  struct Box {
    const std::byte* pixels = nullptr;  // the first one
    std::size_t row_bytes = 0;          // from row to row
    DType dtype = DType::f32;
    std::uint32_t channels = 1;  // interleaved in a row
    SampleCrop crop;             // resized_height and resized_width are not 0; left and top are not used
    std::uint32_t height = 0;    // of the view
    std::uint32_t width = 0;
    ResizeFilter filter = ResizeFilter::bilinear;
    float fill = 0;  // where the view has no pixel
  };
  // Box sides are 1 to 65535, and no output sees more than exact::kMaxTaps pixels (checked by the caller).
  void start(const Box& box);
  // Row `y` of the view: width x channels values, valid until the next call. Called for y = 0, 1, ...,
  // height - 1, once each.
  const float* row(std::uint32_t y);

 private:
  // The outputs of one axis that a view shows: taps [begins[i], begins[i + 1]), in ascending order.
  struct Axis {
    std::vector<std::uint32_t> begins;
    std::vector<std::uint32_t> at;  // of each tap: its source position
    std::vector<float> weights;     // none is 0
    std::uint32_t first_seen = 0;   // no output sees a position before it
    std::uint32_t most_seen = 1;    // positions, by one output
    void build(ResizeFilter filter, std::uint32_t box, std::uint32_t out, ShownOutputs shown);
  };
  void build_columns();
  void resize_columns(const float* stored, float* out);
  float* ring_row(std::uint32_t source_row) noexcept;
  void need_rows(std::uint32_t end);

  FloatKernels floats_ = float_kernels();
  Box box_;
  ShownOutputs columns_;
  ShownOutputs rows_;
  Axis across_;
  Axis down_;
  FloatColumns few_;        // of few interleaved channels
  std::uint32_t done_ = 0;  // source rows before this one are in the ring, or were
  std::size_t pitch_ = 0;
  std::vector<float> stored_;
  std::vector<float> ring_;
  std::vector<float> finished_;
  std::vector<float> view_;
  std::vector<const float*> taps_;
};

}  // namespace shard
