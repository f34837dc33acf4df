// What an exact resize does along each axis of one box: the weights of exact_filter.hpp, laid out for the
// vector loops of exact_kernels.hpp.
//
// Source pixels are taken in pairs. Each weight of 22 bits is split as low + high * 65536, both signed 16
// bits, so that vectors multiply a pair and add the two products at once, without loss:
//   low  = low(first weight)  | low(second weight)  << 16
//   high = high(first weight) | high(second weight) << 16
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/loader/transform.hpp"

namespace shard {

// Which of `resized` outputs that begin at `offset` of a view lie in its `size` positions.
struct ShownOutputs {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};
ShownOutputs shown_outputs(std::uint32_t resized, std::int32_t offset, std::uint32_t size) noexcept;

// The weights of two neighbours.
struct ExactPair {
  std::int32_t low = 0;
  std::int32_t high = 0;
};
constexpr std::int32_t first_weight(ExactPair pair) {
  return static_cast<std::int16_t>(pair.low) + static_cast<std::int16_t>(pair.high) * 65536;
}
constexpr std::int32_t second_weight(ExactPair pair) { return (pair.low >> 16) + (pair.high >> 16) * 65536; }

// One axis: what each of the outputs that a view shows sees.
struct ExactAxis {
  struct Output {
    std::uint32_t first = 0;  // source position
    std::uint32_t count = 0;
  };
  std::uint32_t most_taps = 0;        // largest count
  std::uint32_t most_pairs = 0;       // of an output, rounded up
  std::vector<Output> outputs;        // firsts and ends never fall
  std::vector<std::int32_t> weights;  // [output][2 * most_pairs], zeros from the output's count on

  // Outputs [begin, end) of `box` positions resized to `out`.
  void build(ResizeFilter filter, std::uint32_t box, std::uint32_t out, std::uint32_t begin,
             std::uint32_t end);
};

// The rows of the box.
struct ExactRows {
  ExactAxis axis;
  std::vector<ExactPair> pairs;  // [output][axis.most_pairs]

  void build(ResizeFilter filter, std::uint32_t box, std::uint32_t out, std::uint32_t begin,
             std::uint32_t end);
};

// The columns of the box, which become a row of bytes. Bytes are made in units of 4:
//
//   16 bytes at row + offsets[unit] + 2 * channels * pair
//     --(shuffles[unit])--> 4 x (int16 first, int16 second) --(low, high)--> 4 sums --> 4 bytes
//
// A unit begins `step` bytes after the one before: 4, where the sources of 4 neighbouring bytes lie within 16
// bytes; otherwise a unit is one pixel, and its bytes after the channels are arbitrary.
struct ExactColumns {
  static constexpr std::uint32_t kUnit = 4;
  static constexpr std::uint32_t kUnitMultiple = 16;  // of units: four of the longest vectors
  static constexpr std::uint8_t kNothing = 0x80;      // in shuffles: the byte is 0

  std::uint32_t channels = 1;
  std::uint32_t step = kUnit;
  std::uint32_t units = 0;
  std::uint32_t pairs = 0;
  std::vector<std::uint32_t> offsets;  // [unit]; those of units for padding are 0
  std::vector<std::uint8_t> shuffles;  // [unit][16]
  std::vector<std::int32_t> low;       // [pair][unit][kUnit]
  std::vector<std::int32_t> high;
  std::size_t reach = 0;  // bytes of a row that are read; more than the row has where the box is narrow

  // Outputs [begin, end), the last one first if `flip`.
  void build(ResizeFilter filter, std::uint32_t box, std::uint32_t out, std::uint32_t begin,
             std::uint32_t end, std::uint32_t channels, bool flip);
  std::size_t lanes() const noexcept { return std::size_t{units} * kUnit; }
  // Written for each row, with what the last unit has too much.
  std::size_t out_bytes() const noexcept { return std::size_t{units} * step + 16; }

 private:
  ExactAxis axis_;
  std::vector<ExactPair> pixel_pairs_;
};

}  // namespace shard
