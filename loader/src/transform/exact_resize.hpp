// An exact resize on the host (exact_filter.hpp): the rows of a view, one after the other.
//
//   rows of the box --(columns: weights, to bytes)--> ring of resized rows --(rows: weights, to bytes)--> view
//
// The ring has as many rows as one output sees, and a view that is a part of what the box is resized to costs
// only that part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/loader/transform.hpp"

namespace shard {

// One sample at a time; keeps its memory. Not thread safe.
class ExactResize {
 public:
  // What is resized, and to what.
  struct Box {
    // The first pixel of the box in each plane: one for interleaved pixels, else one for each channel.
    std::span<const std::uint8_t* const> planes;
    std::size_t row_bytes = 0;   // from row to row
    std::uint32_t channels = 1;  // interleaved in a row: 1 to 4
    SampleCrop crop;             // resized_height and resized_width are not 0; left and top are not used
    std::uint32_t height = 0;    // of the view
    std::uint32_t width = 0;
    ResizeFilter filter = ResizeFilter::bilinear;
    // For each channel, or for each plane, where the view has no pixel.
    std::span<const std::uint8_t> fill;
  };
  // `box.planes` and `box.fill` must stay valid until the last row(). Box sides are 1 to 65535, and no output
  // sees more than exact::kMaxTaps pixels (checked by the caller).
  void start(const Box& box);
  // Writes width x channels bytes: row `y` of the view of each plane to outs[plane]. Called for y = 0,
  // 1, ..., height - 1, once each.
  void row(std::uint32_t y, std::span<std::byte* const> outs);

 private:
  // One axis: what each output that the view shows sees.
  struct Axis {
    std::uint32_t begin = 0;  // the outputs [begin, end) of the resized box are in the view
    std::uint32_t end = 0;
    std::uint32_t most_taps = 0;
    std::vector<std::uint32_t> first;  // [output - begin]
    std::vector<std::uint32_t> count;
    std::vector<std::int32_t> weights;  // [output - begin][most_taps], zeros at the end
  };
  static void plan(ResizeFilter filter, std::uint32_t box, std::uint32_t out, std::uint32_t begin,
                   std::uint32_t end, Axis& axis);
  // Source rows until `end` -> ring.
  void resize_columns(std::uint32_t end);
  std::uint8_t* ring_row(std::uint32_t source_row, std::size_t plane) {
    return ring_.data() + (source_row % ring_rows_ * box_.planes.size() + plane) * ring_row_bytes_;
  }

  Box box_;
  Axis columns_;
  Axis rows_;
  std::vector<std::uint8_t> ring_;  // [source row % ring_rows_][plane], as resized columns
  std::size_t ring_row_bytes_ = 0;
  std::uint32_t ring_rows_ = 0;
  std::uint32_t done_ = 0;  // source rows before this one are in the ring, or are not needed any more
};

}  // namespace shard
