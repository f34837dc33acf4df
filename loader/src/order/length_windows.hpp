// Batches of samples of about the same size, so that less of them is padded (LoaderOptions::length_window).
//
//   order      a b c d e f g h | i j ...       windows of whole global batches; this one has four of 2
//   strips     b d e h | a c f g               by rows, cut into about as many strips as each has batches
//   sorted     d h b e | g a f c               each strip by columns
//   delivered  f c | h d | b e | a g           batches, and the rows of each batch, permuted (but sequential)
//
// That is how R-trees are packed (Leutenegger, Lopez and Edgington, "STR: a simple and efficient algorithm
// for R-tree packing", ICDE 1997). An incomplete global batch stays the last one of the epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shard {

// Immutable and thread safe. Memory: 4 bytes per sample.
class LengthWindows {
 public:
  // sizes: of each sample, rows << 16 | columns. window: samples, at least 1.
  LengthWindows(std::vector<std::uint32_t> sizes, std::uint64_t window, std::uint64_t global_batch);

  // Positions of a window: whole global batches.
  std::uint64_t positions() const noexcept { return positions_; }
  std::size_t samples() const noexcept { return sizes_.size(); }
  // The order in which the samples of one window are delivered, as places in `samples`, where a sample may
  // come more than once. key: of this window in this epoch; `permuted`: or not.
  std::vector<std::uint64_t> arranged(std::span<const std::uint64_t> samples, std::uint64_t key,
                                      bool permuted) const;
  // Of the window and all sizes.
  std::uint64_t digest() const;

 private:
  void permute(std::span<std::uint64_t> places, std::uint64_t key) const;

  std::vector<std::uint32_t> sizes_;
  std::uint64_t global_batch_;
  std::uint64_t positions_;
};

}  // namespace shard
