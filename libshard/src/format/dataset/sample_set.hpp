// SampleSet: which samples of one shard belong to a selection, and the k-th of them.
//
// Stored as runs of neighbours (8 bytes each) or, where those would be larger, as a bitmap with a directory
// of ranks: 1 bit a sample of the shard, 32 bits for each 512 samples, and 32 bits for each 512 members. So
// it never exceeds 0.15 bytes a sample. The k-th member is found by a binary search over the runs, or in the
// directory near a hint.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shard {

// Sets the bits [begin, end) of a bitmap, the lowest bit of a word first.
void set_bits(std::span<std::uint64_t> words, std::uint64_t begin, std::uint64_t end) noexcept;

// Immutable once built, then thread safe.
class SampleSet {
 public:
  // An empty set of samples below `universe` (at most 2^32).
  explicit SampleSet(std::uint64_t universe) : universe_(universe) {}

  // Adds [begin, end), which lies after all that was added before.
  void add(std::uint64_t begin, std::uint64_t end);
  // To be called once, after the last add() and before the functions below.
  void finish();

  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t universe() const noexcept { return universe_; }
  // The member with `rank` members before it; rank < size().
  std::uint64_t operator[](std::uint64_t rank) const noexcept;
  // The first run of members that begins at `from` or later or contains it, cut off before it.
  // Empty: there is none.
  struct Run {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  Run run_from(std::uint64_t from) const noexcept;
  // Bytes on the heap.
  std::uint64_t memory_bytes() const noexcept;

 private:
  // The run [first, first + members up to the next run's `before`).
  struct Start {
    std::uint32_t first = 0;
    // Members before it.
    std::uint32_t before = 0;
  };
  bool in_bits() const noexcept { return !bits_.empty(); }
  std::uint64_t run_end(std::size_t run) const noexcept;
  void to_bits();

  std::uint64_t universe_;
  std::uint64_t size_ = 0;
  std::vector<Start> runs_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::uint32_t> ranks_;  // of each block of 512 samples: members before it
  std::vector<std::uint32_t> hints_;  // the block that holds each 512th member
};

}  // namespace shard
