// An exact resize on the host (exact_filter.hpp): the rows of a view, one after the other.
//
//   rows of the box --(columns: weights, to bytes)--> ring of rows --(rows: weights, to bytes)--> view
//
// The ring has as many rows as one output sees, and a few more. A view that is a part of what the box is
// resized to costs only that part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/loader/transform.hpp"
#include "transform/exact/exact_kernels.hpp"
#include "transform/transform_kernels.hpp"

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
  std::size_t source_bytes() const noexcept;  // of a row of the box
  const std::uint8_t* source_row(std::uint32_t row, std::size_t plane) const noexcept;
  std::uint8_t* ring_row(std::uint32_t source_row, std::size_t plane) noexcept;
  // False if the shown parts of source rows are what the rows are made of.
  bool uses_ring() const noexcept { return !copies_columns_ || box_.crop.flip; }
  // The shown part of a source row, its columns resized and flipped.
  const std::uint8_t* resized_columns(std::uint32_t row, std::size_t plane) noexcept;
  // Source rows [done_, end) -> ring, with a few of those that are needed next.
  void resize_columns(std::uint32_t end);
  // Output row of the resized box, as far as it is in the view.
  void write_pixels(std::uint32_t output, std::size_t plane, std::uint8_t* out);

  ExactKernels kernels_ = exact_kernels();
  TransformKernels copies_ = transform_kernels();
  Box box_;
  std::uint32_t columns_begin_ = 0;  // the outputs [begin, end) of the resized box are in the view
  std::uint32_t columns_end_ = 0;
  std::uint32_t rows_begin_ = 0;
  std::uint32_t rows_end_ = 0;
  bool copies_columns_ = false;  // the box has the resized size
  bool copies_rows_ = false;
  ExactColumns columns_;
  ExactRows rows_;
  // [source row % ring_rows_][plane]; not used if source rows need no change.
  std::vector<std::uint8_t> ring_;
  std::size_t ring_row_bytes_ = 0;
  std::uint32_t ring_rows_ = 0;
  std::uint32_t source_end_ = 0;      // of the rows that are needed
  std::uint32_t done_ = 0;            // source rows before this one are in the ring, or not needed any more
  std::vector<std::uint8_t> padded_;  // [row of a batch][plane], of columns_.reach bytes, from narrow boxes
  std::vector<const std::uint8_t*> ins_;
  std::vector<const std::uint8_t*> soon_;
  std::vector<std::uint8_t*> outs_;
};

}  // namespace shard
