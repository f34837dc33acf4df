// Which samples are in which batch, if each batch has samples of one bucket only (shard/loader/buckets.hpp).
//
//   assignment   0 1 0 0 1 0 0 1          the bucket of samples 0 to 7
//   grouped      0 2 3 5 6 | 1 4 7        bucket 0 | bucket 1
//   permuted     5 0 6 3 2 | 7 1 4        per epoch, inside each bucket
//   batches      A A B B C | D D E        global batches of 2 samples; C and E are tails
//   delivered    D B A E C                per epoch, batches of all buckets among each other
//
// With a sampling, each bucket has a fixed number of draws in an epoch, as many as its samples are of all
// draws, and they are drawn as the sampling says of these samples alone (Sampling::split()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shard/loader/buckets.hpp"
#include "shard/loader/order.hpp"
#include "shard/loader/sampling.hpp"

namespace shard {

struct BucketOrderOptions {
  // This process among those that share the data set: 0 to world_size - 1.
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  // sequential or shuffle.
  OrderMode order = OrderMode::shuffle;
  // What happens to the last, incomplete global batch of each bucket. Batches are filled up with samples of
  // their own bucket; wrap: with the first ones of its sequence.
  Tail tail = Tail::drop;
  std::uint64_t seed = 0;
  // Null: each sample once an epoch. Otherwise of this data set, and with order shuffle.
  std::shared_ptr<const Sampling> sampling = nullptr;
  // With a sampling: draws in an epoch, of all buckets together; at least 1.
  std::uint64_t draws = 0;
};

// Which samples are in which batch: a pure function of (seed, epoch, batch). Immutable and thread safe.
//
// shuffle: in each epoch, samples are permuted inside their bucket, and the batches of all buckets are
// permuted among each other, both by Permutation. Every order of the batches is equally likely. So at every
// point of an epoch, the chance of a bucket to be next is its share of the batches that are left. An
// incomplete batch can be at any place in the epoch.
// sequential: each bucket has its samples in the order of the data set, and batches come in the order of
// their first samples.
//
// The sequence of global batches does not depend on rank and world size, if the global batch size of each
// bucket is the same. Rank r of w takes the slice [floor(r * n/w), floor((r + 1) * n/w)) of a global batch of
// n rows, as in order.hpp. If w does not divide n, the slices of the ranks differ by at most one row.
//
// To resume, a loader needs the number of *global batches* of the epoch that were delivered: the next one is
// batch(epoch, that number). This number is the same for all ranks and for every world size. A number of
// samples (LoaderState::position) would not tell the batch directly, because batch sizes differ by bucket.
//
// Memory: 4 bytes per sample; in a sequential order also 4 bytes per global batch.
class BucketOrder {
 public:
  // assignment: the bucket of each sample, in the order of the data set. It is not kept.
  // global_batches: the batch size of each bucket, of all ranks together: 1 to 65536 x world_size samples.
  // A bucket may have no samples.
  // Throws invalid_argument naming the value and its bounds, also if there are more than 2^32 - 1 samples or
  // tail drop leaves no batch. O(samples + buckets).
  BucketOrder(std::span<const std::uint16_t> assignment, std::span<const std::uint64_t> global_batches,
              const BucketOrderOptions& options);

  // Batches of each rank per epoch. It is the number of global batches.
  std::uint64_t batches() const noexcept { return batch_begin_.back(); }
  // Batch `index` of `epoch` for this rank; returns its bucket. O(log buckets + batch size). It has no rows
  // for some ranks if the global batch has fewer rows than there are ranks. Throws invalid_argument if
  // `index` is not below batches().
  std::size_t batch(std::uint64_t epoch, std::uint64_t index, BatchIndices& out) const;
  // How many samples of each bucket (with a sampling: draws) an epoch leaves out: with tail drop those that
  // do not fill a global batch, otherwise 0. With shuffle, each epoch leaves out different samples. A bucket
  // with fewer samples than its global batch is never delivered.
  std::vector<std::uint64_t> left_out() const;
  const BucketOrderOptions& options() const noexcept { return options_; }
  // A digest of everything but seed and epoch that determines the sequence of global batches: the bucket of
  // each sample, the global batch sizes of buckets that have samples, mode, tail, and what is drawn how
  // often. It is the same for every rank and world size.
  std::uint64_t digest() const;

 private:
  std::size_t buckets() const noexcept { return global_batches_.size(); }
  std::uint64_t samples_of(std::size_t bucket) const noexcept {
    return sample_begin_[bucket + 1] - sample_begin_[bucket];
  }
  // Of an epoch.
  std::uint64_t positions_of(std::size_t bucket) const noexcept {
    return position_begin_[bucket + 1] - position_begin_[bucket];
  }
  void share_draws(std::span<const std::uint16_t> assignment);

  BucketOrderOptions options_;
  std::vector<std::uint64_t> global_batches_;
  std::vector<std::uint64_t> sample_begin_;  // of each bucket in samples_; one more than buckets
  // Of each bucket; one more than buckets. Without a sampling: sample_begin_.
  std::vector<std::uint64_t> position_begin_;
  std::vector<Sampling::Share> shares_;     // of each bucket. Empty: without a sampling
  std::vector<std::uint64_t> batch_begin_;  // of each bucket, all batches in a row; one more than buckets
  std::vector<std::uint32_t> samples_;      // by bucket, in each one rising
  std::vector<std::uint32_t> in_sequence_;  // sequential: batches in the order of their first samples
  std::uint64_t assignment_digest_;
};

}  // namespace shard
