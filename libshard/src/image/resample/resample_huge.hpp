// One axis of a resize without a table of coefficients, for sources for which the table would take more
// memory than the pixels. Positions come in order, and each is added to the few outputs that it is part of:
//
//   position i           for each output whose taps include i: sum += coefficient(i) * pixel
//   last tap of output   the sum is rounded to 8 bits, and the output is done
//
// Coefficients are computed when they are used. The result is the same as with the tables (filter.hpp), bit
// for bit. Memory: a few values per output and column, nothing per source position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "image/resample/filter.hpp"

namespace shard::image {

// The outputs [begin, begin + count) of an axis: the range and the sum of the taps of each. The constructor
// visits all taps once.
struct HugeAxis {
  struct Output {
    std::uint32_t first = 0;  // half-open source positions
    std::uint32_t last = 0;
    double sum = 0;
  };
  HugeAxis(std::uint32_t source_size, std::uint32_t resized_size, std::uint32_t begin_output,
           std::uint32_t count, Filter filter_name);

  // Whether a table for this axis would be too large.
  static bool is_huge(std::uint32_t source, std::uint32_t resized, std::uint32_t count, Filter filter);

  std::uint32_t source = 0;
  std::uint32_t resized = 0;
  std::uint32_t begin = 0;
  Filter filter = Filter::bilinear;
  std::uint32_t source_begin = 0;  // half-open positions with a tap
  std::uint32_t source_end = 0;
  std::vector<Output> outputs;
};

// One row at a time: pixels from the left to the right, `count` at a time.
class HugeRow {
 public:
  void begin(const HugeAxis& axis);
  // RGB of the source columns [column, column + count). Each call continues where the last one ended.
  void push(const HugeAxis& axis, const std::uint8_t* rgb, std::uint32_t column, std::uint32_t count);
  // Outputs x 3 bytes, once every column was pushed.
  void finish(std::uint8_t* out) const;

 private:
  std::vector<std::int32_t> sums_;  // [output, channel]
  std::size_t first_open_ = 0;      // outputs before it are done
};

// Columns of bytes at a time: rows from top to bottom.
class HugeColumns {
 public:
  void begin(const HugeAxis& axis, std::size_t columns);
  // Adds row `position` of the source, `columns` bytes. Then call write_next() while next_done().
  void push(const HugeAxis& axis, std::uint32_t position, const std::uint8_t* row);
  // Whether the output next_index() has all of its rows, `position` being the last one pushed.
  bool next_done(const HugeAxis& axis, std::uint32_t position) const noexcept;
  std::uint32_t next_index() const noexcept { return static_cast<std::uint32_t>(next_); }
  // Writes `columns` bytes: the output next_index().
  void write_next(std::uint8_t* out);

 private:
  std::int32_t* sums_of(std::size_t output) noexcept;

  std::size_t columns_ = 0;
  std::size_t next_ = 0;            // the first output that was not written
  std::size_t slots_ = 0;           // outputs that may be open at once; output i has slot i % slots_
  std::vector<std::int32_t> sums_;  // [slot, column]
};

}  // namespace shard::image
