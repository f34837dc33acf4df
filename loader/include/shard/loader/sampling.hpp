// Sampling: which samples an epoch draws, if not each of them once. OrderOptions::sampling takes one.
//
//   mix, grouped, balanced    samples come from groups, in stated proportions
//   weighted                  each sample has a weight
//   uniform                   each sample is as likely as any other at every position
//
// Like every order it is a pure function of (seed, epoch, position),
// so that neither ranks nor a resume change it.
//
// Groups of equal proportions (`balanced`, many mixes), if their number divides 1,000 or is above 100. m
// groups have blocks of 1,000 / m positions for each group, rounded down, and at least one: every group has
// exactly so many of them, and these are shuffled. Of an epoch's n positions, n mod m are left. Which groups
// they go to is decided by rounds: those of all epochs together are a sequence in which each m in a row have
// every group once, in an order drawn for each round.
//
// Other groups. Up to 100 of them: an epoch is divided into blocks of 1,000 positions; the last one may be
// shorter. In a block of n positions a group of proportion p has floor(p x n) or ceil(p x n) of them, and
// these are shuffled. Which groups are rounded up is decided by systematic sampling (Madow, "On the theory of
// systematic sampling, II", Annals of Mathematical Statistics, 1949) with an offset that follows van der
// Corput's sequence from block to block. So the share of a group over any number of blocks is exact to a few
// samples, and how many were drawn before a block is known without counting. With more than 100 groups, in
// which such a choice would be a regular pattern, blocks have 8 positions for each group and go on from one
// epoch to the next. Proportions are kept to about 1e-9.
//
// Inside a group the draws are passes, also from one epoch to the next: in the order of time,
// every sample is drawn once before any is drawn again.
//
// Weights. With replacement: an alias table (Walker, "An efficient method for generating discrete random
// variables with general distributions", ACM TOMS, 1977; built as by Vose, IEEE TSE, 1991): 12 bytes a
// sample, O(1) a position. Without replacement: the samples with the least keys -ln(u) / weight, in that
// order (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", Information Processing
// Letters, 2006): computed once per epoch in O(samples).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shard/error.hpp"

namespace shard {

class Dataset;

// Immutable and thread safe. It belongs to a data set by the number of samples.
class Sampling {
 public:
  virtual ~Sampling() = default;

  // Consecutive samples of a data set, and how much of the sequence they are.
  struct Part {
    std::uint64_t samples = 0;
    // In any unit. A part with 0 is never drawn.
    double proportion = 0;
  };
  // Errors: invalid_argument (no part; a proportion that is negative or not finite; all are 0;
  // a part without samples that has a proportion).
  static std::shared_ptr<const Sampling> mix(std::span<const Part> parts);
  // group_of: by sample, its position in `proportions`. Memory: 16 bytes for each run of samples of one
  // group or, if they are in no order, 4 bytes a sample (8 from 2^32 samples on). Errors: as mix(), and a
  // group beyond the last.
  static std::shared_ptr<const Sampling> grouped(std::span<const std::uint32_t> group_of,
                                                 std::span<const double> proportions);
  // Every class that has samples as often as any other. Reads all labels. Errors: unsupported (labels are not
  // I64 [N]), and those of reading the data set.
  static std::shared_ptr<const Sampling> balanced(const Dataset& data);
  // One weight per sample. Errors: invalid_argument (negative, not finite; all 0; none; more than 2^32).
  static std::shared_ptr<const Sampling> weighted(std::span<const double> weights, bool replacement = true);
  // With replacement, or without it: then every sample is drawn once before any is drawn again,
  // whatever the epoch's length.
  static std::shared_ptr<const Sampling> uniform(std::uint64_t samples, bool replacement);

  // Of the data set that it is for.
  virtual std::uint64_t samples() const noexcept = 0;
  // The most positions that an epoch can have. 0: no limit.
  virtual std::uint64_t longest_epoch() const noexcept { return 0; }
  // Says what is drawn, but for the seed.
  virtual std::uint64_t digest() const noexcept = 0;
  // What digest() was in versions of this library that drew other samples. The same: none did.
  virtual std::uint64_t earlier_digest() const noexcept { return digest(); }

  struct Epoch {
    std::uint64_t seed = 0;
    std::uint64_t number = 0;
    // Positions.
    std::uint64_t length = 0;
  };
  // Replaces positions of an epoch by samples. Each position is less than epoch.length.
  virtual void draw(const Epoch& epoch, std::span<std::uint64_t> positions) const = 0;

  // The sampling of some of the samples, numbered anew from 0 in the order of the data set, by the
  // proportions and weights that they have in the whole.
  struct Share {
    std::shared_ptr<const Sampling> sampling;  // null: they are never drawn
    // What they are of all draws, to about 1e-9; of all parts together 1.
    double proportion = 0;
  };
  // Cuts the samples into parts, as buckets do. part_of: the part of each sample, less than `parts`. Takes
  // 4 to 16 bytes a sample.
  virtual std::vector<Share> split(std::span<const std::uint16_t> part_of, std::size_t parts) const = 0;

 protected:
  Sampling() = default;
  Sampling(const Sampling&) = default;
  Sampling& operator=(const Sampling&) = default;
};

}  // namespace shard
