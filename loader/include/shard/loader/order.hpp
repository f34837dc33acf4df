// Order: which samples, in which sequence. A pure function of (seed, epoch, position); constant memory.
//
//   permutation over [0, n): a Feistel network on as many bits as n - 1 has (halves of unlike width where
//   that is odd), walked along its cycle until it lands below n (Black and Rogaway, "Ciphers with arbitrary
//   finite domains", CT-RSA 2002, "cycle walking"): fewer than two steps on average
//
// The sequence of global batches does not depend on the world size: rank r of w takes every global batch's
// slice [r * b/w, (r + 1) * b/w), b being the global batch size. A short last global batch of n samples is
// divided likewise, slice [floor(r * n/w), floor((r + 1) * n/w)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shard {

// A keyed bijection of [0, n). O(1) memory and expected O(1) time a call. Thread safe.
class Permutation {
 public:
  Permutation(std::uint64_t n, std::uint64_t key) noexcept;         // n >= 1
  std::uint64_t operator()(std::uint64_t position) const noexcept;  // position < n
  std::uint64_t inverse(std::uint64_t value) const noexcept;        // value < n
  // Each position becomes its value. Several times as fast as one call a position: the steps of several
  // positions overlap.
  void apply(std::span<std::uint64_t> positions) const noexcept;

 private:
  static constexpr std::size_t kRounds = 6;
  std::uint64_t encrypt(std::uint64_t value) const noexcept;

  std::uint64_t n_;
  std::uint32_t right_bits_;
  std::uint64_t right_mask_;
  std::uint64_t left_mask_;
  std::uint64_t round_keys_[kRounds];
};

enum class OrderMode : std::uint8_t { sequential, shuffle, windowed };
enum class Partition : std::uint8_t {
  global,    // every rank sees slices of the one global sequence
  by_shard,  // in an epoch a rank reads only its share of the shards (permuted each epoch); sizes differ by
             // at most one shard. Tail short: by at most one sample, for which two ranks may share a shard
};
enum class Tail : std::uint8_t {
  drop,  // the last incomplete global batch is left out
  pad,   // filled up with repeated samples, mask 0
  wrap,  // filled up with the first samples of the epoch's sequence, mask 1
  // A last batch of fewer rows: over all ranks every sample of the epoch is delivered exactly once, mask 1.
  // All ranks have the same number of batches. The rows of their last ones differ by at most one, so where
  // fewer samples than ranks are left, some ranks get a last batch of 0 rows.
  short_,
};

struct OrderOptions {
  OrderMode mode = OrderMode::shuffle;
  std::uint32_t window_shards =
      8;  // windowed: shards are permuted; samples are permuted inside each window of so many shards
  Partition partition = Partition::global;
  Tail tail = Tail::drop;
  std::uint64_t seed = 0;
  std::uint64_t batch_size = 256;  // of this rank; the global batch is batch_size x world
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
};

// Where a loader stands: enough to go on, also with another world size (global partition; the global batch
// size must be the same).
struct LoaderState {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // global samples of the epoch already handed out, over all ranks
  std::uint64_t samples = 0;   // of the data set: refused when it differs
  std::uint64_t global_batch = 0;
  // by_shard: must be the same again.
  std::uint32_t world = 1;
  // Order::digest(): with another one the position stands for other samples.
  std::uint64_t order = 0;
  // Of the data set: DatasetInfo::fingerprint as a number.
  std::uint64_t fingerprint = 0;
  // A line of a few dozen bytes.
  std::string serialize() const;
  // Throws invalid_argument, also for a state of an earlier version, which does not say what order it is of.
  static LoaderState parse(const std::string& text);
  bool operator==(const LoaderState&) const = default;
};

// One batch of this rank: data set indices, and 1 for real samples, 0 for padding. batch_size of them, or
// fewer (tail short).
struct BatchIndices {
  std::vector<std::uint64_t> samples;
  std::vector<std::uint8_t> mask;
};

struct TableCache;

// Immutable; thread safe. Memory: one number a shard, none a sample.
class Order {
 public:
  // shard_samples: samples of each shard of the data set, in order. Throws invalid_argument naming the option
  // and its bounds.
  Order(std::span<const std::uint64_t> shard_samples, const OrderOptions& options);
  std::uint64_t batches() const noexcept;  // a rank's batches in an epoch
  // The most different samples that this rank comes to over all epochs: its part in a sequential order, else
  // all of the data set.
  std::uint64_t samples_of_rank() const noexcept;
  // Batch `index` of `epoch` for this rank: O(batch size). Thread safe.
  void batch(std::uint64_t epoch, std::uint64_t index, BatchIndices& out) const;
  // The shards that batch `index` and those after it come to in this epoch, in the sequence of the walk; at
  // most so many. windowed: from the begin of the batch's window; a shuffle by_shard is one window. A global
  // shuffle has no such sequence: empty, and so for a batch of no rows.
  std::vector<std::uint32_t> shards_from(std::uint64_t epoch, std::uint64_t index, std::size_t at_most) const;
  const OrderOptions& options() const noexcept { return options_; }
  // Of what decides which samples stand where, besides seed and epoch: mode, tail, partition, and where it
  // matters the window and the sizes of the shards. The same for every rank and world size.
  std::uint64_t digest() const;

 private:
  struct EpochTable;  // which shards, in which sequence
  struct ShardPart {  // what a rank reads of a shard
    std::uint32_t shard;
    std::uint64_t skipped;  // samples before it
    std::uint64_t samples;
  };
  struct Rows {  // positions in the sequence
    std::uint64_t first;
    std::uint64_t count;
  };
  std::vector<ShardPart> parts_of(std::uint64_t epoch) const;
  Rows rows_of(std::uint64_t index, std::uint64_t length) const noexcept;
  std::shared_ptr<const EpochTable> table(std::uint64_t epoch) const;
  void place(const EpochTable& sequence, std::span<std::uint64_t> positions) const;

  OrderOptions options_;
  std::vector<std::uint64_t> shard_begin_;  // prefix sums, one more than shards
  std::uint64_t samples_ = 0;
  std::shared_ptr<TableCache> cache_;
};

}  // namespace shard
