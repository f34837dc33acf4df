// Streaming resize: source rows go in, and each resized row comes out as soon as its source rows are there.
//
//   source rows --(batches, horizontal pass)--> ring of pair rows --(vertical pass)--> sink
//
// The ring has as many rows as the vertical filter needs, so a photo of any size needs a few dozen kB of
// cache. If the tables, the ring or a batch of rows would still be large (a source of millions of columns or
// rows), that axis is resized without them (resample_huge.hpp). So memory besides the source row stays below
// about 256 MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "image/resample/filter.hpp"
#include "image/resample/resample_huge.hpp"
#include "image/resample/resample_kernels.hpp"

namespace shard::image {

// Takes the finished rows, top to bottom.
class RowSink {
 public:
  // Where row `y` is to be written: width x 3 bytes.
  virtual std::uint8_t* begin_row(std::uint32_t y) = 0;
  virtual void end_row(std::uint32_t y) = 0;

 protected:
  ~RowSink() = default;
};

// Bytes at an address that is a multiple of kAlignment. It grows but never shrinks, and loses its content
// when it grows.
class AlignedBuffer {
 public:
  std::byte* reserve(std::size_t size_bytes);

 private:
  struct Deleter {
    void operator()(std::byte* bytes) const noexcept {
      ::operator delete[](bytes, std::align_val_t{kAlignment});
    }
  };
  std::unique_ptr<std::byte[], Deleter> bytes_;
  std::size_t size_ = 0;
};

// Resizes one image at a time: start(), then push() all rows of source_box(). Not thread safe.
class Resampler {
 public:
  // The part `box` of an image of size `source` resized to `resized`. `sink` must live until the last push.
  void start(Size source, Size resized, const Box& box, Filter filter, RowSink& sink);
  // The part of the source that is needed: push takes these rows, each beginning at column `left`.
  const Box& source_box() const noexcept { return source_box_; }
  // The next `count` rows; `stride_bytes` apart.
  void push(const std::uint8_t* rows, std::size_t stride_bytes, std::uint32_t count);
  // True if rows are very long: they must then be pushed in pieces, from left to right.
  bool takes_pieces() const noexcept { return huge_horizontal_ != nullptr; }
  // The next `count` columns of the current row, source_box().left being the first; its last ones end the
  // row.
  void push_piece(const std::uint8_t* rgb, std::uint32_t count);

 private:
  void start_horizontal(Size source, Size resized, const Box& box, Filter filter);
  void start_vertical(Size source, Size resized, const Box& box, Filter filter);
  void add_row(const std::uint8_t* resized_row);
  void process_batch(const std::uint8_t* const* rows);
  void take_columns(std::uint32_t rows);
  void emit();
  std::uint8_t* pair_row(std::uint32_t pair);

  ResampleKernels kernels_ = resample_kernels();
  AxisPlanCache horizontal_plans_;
  AxisPlanCache vertical_plans_;
  std::shared_ptr<const AxisPlan> horizontal_;
  std::shared_ptr<const AxisPlan> vertical_;
  // Instead of the plan of that axis.
  std::unique_ptr<const HugeAxis> huge_horizontal_;
  std::unique_ptr<const HugeAxis> huge_vertical_;
  HugeRow huge_row_;
  HugeColumns huge_columns_;
  std::vector<std::uint8_t> resized_row_;  // after the horizontal pass; as bytes side by side
  std::uint32_t piece_column_ = 0;         // of the current row, from source_box().left
  Box source_box_;
  bool copies_ = false;  // the size does not change
  RowSink* sink_ = nullptr;
  std::size_t columns_ = 0;  // bytes of a finished row
  std::uint32_t rows_pushed_ = 0;
  std::uint32_t pairs_done_ = 0;
  std::uint32_t outputs_done_ = 0;
  std::uint32_t ring_mask_ = 0;     // pair p lies at ring row p & ring_mask_
  std::uint32_t carried_rows_ = 0;  // rows of an incomplete batch, in carry_
  AlignedBuffer ring_storage_;
  AlignedBuffer scratch_storage_;
  AlignedBuffer carry_storage_;
  std::byte* ring_ = nullptr;
  std::byte* scratch_ = nullptr;
  std::uint8_t* carry_ = nullptr;
  std::vector<const std::uint8_t*> window_;  // pair rows of one output
};

}  // namespace shard::image
