// Order: which samples are delivered, and in which sequence. It is a pure function of (seed, epoch, position)
// and needs constant memory.
//
// A permutation of [0, n) is a Feistel network on the bits of n - 1, in halves of different width if their
// number is odd. It is applied again until the result is below n, fewer than two times on average (Black and
// Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002, "cycle walking"). Up to 256 items, for which
// the halves of such a network are too narrow to give every order alike, it is a swap-or-not shuffle of 32
// rounds (Hoang, Morris and Rogaway, "An enciphering scheme based on a card shuffle", CRYPTO 2012).
//
// The sequence of global batches does not depend on the world size. Rank r of w takes the slice [r * b/w, (r
// + 1) * b/w) of each global batch of b samples. A short last global batch of n samples is divided in the
// same way: slice [floor(r * n/w), floor((r + 1) * n/w)).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shard/error.hpp"
#include "shard/loader/sampling.hpp"
#include "shard/schema.hpp"

namespace shard {

// A keyed bijection of [0, n). O(1) memory, expected O(1) time per call. Thread safe.
class Permutation {
 public:
  // Up to so many items it is a swap-or-not shuffle.
  static constexpr std::uint64_t kFew = 256;
  Permutation(std::uint64_t n, std::uint64_t key) noexcept;         // n >= 1
  std::uint64_t operator()(std::uint64_t position) const noexcept;  // position < n
  std::uint64_t inverse(std::uint64_t value) const noexcept;        // value < n
  // Replaces each position by its value. Several times as fast as one call per position, because the steps of
  // several positions overlap.
  void apply(std::span<std::uint64_t> positions) const noexcept;

 private:
  static constexpr std::size_t kRounds = 6;
  std::uint64_t encrypt(std::uint64_t value) const noexcept;
  std::uint64_t walk(std::uint64_t position) const noexcept;

  std::uint64_t n_;
  // Not of few items.
  std::uint32_t right_bits_ = 0;
  std::uint64_t right_mask_ = 0;
  std::uint64_t left_mask_ = 0;
  // Of few items: the first one is the key.
  std::uint64_t round_keys_[kRounds]{};
};

enum class OrderMode : std::uint8_t { sequential, shuffle, windowed };
constexpr std::array<std::string_view, 3> words_of(OrderMode) {
  return {"sequential", "shuffle", "windowed"};
}
enum class Partition : std::uint8_t {
  // Each rank gets slices of one global sequence.
  global,
  // In each epoch a rank reads only its share of the shards, which are permuted per epoch. The shares differ
  // by at most one shard; with tail short by at most one sample, for which two ranks may share a shard.
  by_shard,
};
constexpr std::array<std::string_view, 2> words_of(Partition) { return {"global", "by_shard"}; }
// What happens to the last, incomplete global batch.
enum class Tail : std::uint8_t {
  // It is left out.
  drop,
  // It is filled up with repeated samples, whose mask is 0.
  pad,
  // It is filled up with the first samples of the epoch's sequence, whose mask is 1.
  wrap,
  // It has fewer rows. All ranks together deliver every sample of the epoch exactly once, with mask 1. All
  // ranks have the same number of batches, and the rows of their last batches differ by at most one. If fewer
  // samples than ranks are left, some ranks get a last batch of 0 rows.
  short_,
};
constexpr std::array<std::string_view, 4> words_of(Tail) { return {"drop", "pad", "wrap", "short"}; }

struct OrderOptions {
  // Samples per batch of this rank, 1 to 65536. The global batch has batch_size x world_size samples.
  std::uint64_t batch_size = 256;
  // This process among those that share the data set: 0 to world_size - 1.
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  OrderMode order = OrderMode::shuffle;
  // windowed: shards are permuted, and samples are permuted inside each window of this many shards.
  std::uint32_t window_shards = 8;
  Partition partition = Partition::global;
  Tail tail = Tail::drop;
  std::uint64_t seed = 0;

  // The following need order shuffle and partition global.
  //
  // What is drawn. Null: each sample once per epoch.
  std::shared_ptr<const Sampling> sampling{};
  // Positions of an epoch, of all ranks together. 0: as many as the data set has samples. With
  // a null `sampling`, an epoch goes on where the last one ended: each sample is drawn once
  // before any is drawn again.
  std::uint64_t samples_per_epoch = 0;
  // Each global batch has every one of its samples this many times, with different augmentation (Hoffer et
  // al., "Augment your batch", CVPR 2020; "repeated augmentation" of DeiT and timm). Copies are far apart in
  // the batch, so that ranks get different ones. It must divide the global batch.
  std::uint32_t repeats = 1;

  // visit(name, member, Limits) for each that is a number or a word.
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("batch_size", of.batch_size, Limits{.low = 1, .high = 65'536});
    visit("rank", of.rank, Limits{});              // and less than world_size
    visit("world_size", of.world_size, Limits{});  // and at least 1
    visit("order", of.order, Limits{});
    visit("window_shards", of.window_shards, Limits{.low = 1});
    visit("partition", of.partition, Limits{});
    visit("tail", of.tail, Limits{});
    visit("seed", of.seed, Limits{});
    visit("samples_per_epoch", of.samples_per_epoch, Limits{.high = 281'474'976'710'656});  // 2^48
    visit("repeats", of.repeats, Limits{});  // and a divisor of the global batch
  }
};

// Whether batches go through the shards one after the other, or window by window:
// every order but a global shuffle.
bool walks_shards(const OrderOptions& options) noexcept;

// The position of a loader: enough to continue, with partition `global` also with another world size, if the
// global batch size is the same.
struct LoaderState {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  // Samples of the epoch that all ranks together have delivered.
  std::uint64_t position = 0;
  // Samples of the data set. Refused if it differs.
  std::uint64_t samples = 0;
  std::uint64_t global_batch = 0;
  // by_shard: must be the same again.
  std::uint32_t world_size = 1;
  // Order::digest(). With another digest the position would mean other samples.
  std::uint64_t order = 0;
  // DatasetInfo::fingerprint as a number.
  std::uint64_t fingerprint = 0;
  // Dataset::selection_digest().
  std::uint64_t selection = 0;
  // DatasetInfo::source_digest as a number: which images and labels they are. 0: not known, as in states of
  // earlier versions; positions are then taken as they are.
  std::uint64_t inputs = 0;
  // The views of the epoch (LoaderOptions::transform and further_views) as text. Empty: they are not known,
  // as in states of earlier versions, or not wanted; resume() then leaves the loader's.
  std::string views{};
  // Those of the epoch after it, if Loader::set_views() has replaced them. Empty: the same.
  std::string next_views{};
  // One line: about a hundred bytes, and some dozen for each operation of a view.
  std::string serialize() const;
  // Throws invalid_argument, also for a state of version 1, which does not contain the order's digest.
  static LoaderState parse(const std::string& text);
  bool operator==(const LoaderState&) const = default;
};

// One batch of this rank: indices in the data set, and a mask with 1 for real samples and 0 for padding. It
// has batch_size rows, or fewer with tail short.
struct BatchIndices {
  std::vector<std::uint64_t> samples;
  std::vector<std::uint8_t> mask;
  // By what augmentation is drawn: the sample or, where an epoch may have a sample more than once,
  // the position with its highest bit set.
  std::vector<std::uint64_t> draws;
  // Which of LoaderOptions::buckets the batch has; 0 without.
  std::size_t bucket = 0;
};

struct TableCache;
class BucketOrder;
class LengthWindows;

// Immutable and thread safe. Needs one number per shard, and nothing per sample.
class Order {
 public:
  // shard_samples: the number of samples of each shard, in order. Throws invalid_argument naming the option
  // and its bounds.
  Order(std::span<const std::uint64_t> shard_samples, const OrderOptions& options);
  // Batches of one bucket each (buckets.hpp). assignment: the bucket of each sample. global_batches: the
  // global batch size of each bucket. Order shuffle or sequential, any sampling, but repeats 1; partition
  // global; `tail` is applied to each bucket. It has 4 bytes per sample. `recipe`: a digest of what a bucket
  // makes of its samples, which becomes part of digest().
  Order(std::span<const std::uint64_t> shard_samples, const OrderOptions& options,
        std::span<const std::uint16_t> assignment, std::span<const std::uint64_t> global_batches,
        std::uint64_t recipe = 0);
  // Batches of samples of about the same size (loader/src/order/length_windows.hpp): windows of
  // `length_window` positions, rounded up to whole global batches, are sorted by size. sizes: of each sample,
  // rows << 16 | columns. Any sampling, but repeats 1; partition global.
  Order(std::span<const std::uint64_t> shard_samples, const OrderOptions& options,
        std::vector<std::uint32_t> sizes, std::uint64_t length_window);
  // Batches of a rank per epoch.
  std::uint64_t batches() const noexcept;
  // Positions of an epoch, of all ranks together.
  std::uint64_t positions() const noexcept;
  // How many different samples this rank can read over all epochs: its part in a sequential order, else all
  // of the data set.
  std::uint64_t samples_of_rank() const noexcept;
  // Batch `index` of `epoch` for this rank: O(batch size). Thread safe.
  void batch(std::uint64_t epoch, std::uint64_t index, BatchIndices& out) const;
  // Up to `at_most` shards in the order in which batches from `index` on first need them. windowed: from the
  // start of the batch's window on; a shuffle by_shard is one window. Empty for a global shuffle, which needs
  // all shards at once, and for a batch without rows.
  std::vector<std::uint32_t> shards_from(std::uint64_t epoch, std::uint64_t index, std::size_t at_most) const;
  // All shards that this rank walks in an epoch, in their order. Empty for a global shuffle.
  std::vector<std::uint32_t> shards_of(std::uint64_t epoch) const;
  // The places in shards_of() of the shards that a batch may read: those of its windows. Half-open; where the
  // batch wraps around, up to the end. Of a batch without rows: the end. Not for a global shuffle.
  struct Places {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  Places places(std::uint64_t epoch, std::uint64_t index) const;
  const OrderOptions& options() const noexcept { return options_; }
  // A digest of everything but seed and epoch that determines the sequence: mode, tail, partition and, if
  // they matter, the window, the sizes of the shards, and what is drawn how often.
  // The same for every rank and world size.
  std::uint64_t digest() const;
  // What digest() was in versions of this library whose sequence was another one (before permutations
  // of up to 256 items were uniform, and groups drawn as in sampling.hpp). The same where the
  // sequence has never changed.
  std::uint64_t earlier_digest() const;
  // With buckets: how many samples of each an epoch leaves out, because they do not fill a global batch (tail
  // drop). Else empty.
  std::vector<std::uint64_t> left_out() const;

 private:
  // The sequence of the shards of an epoch.
  struct EpochTable;
  // The part of a shard that a rank reads; `skipped` samples come before it.
  struct ShardPart {
    std::uint32_t shard;
    std::uint64_t skipped;
    std::uint64_t samples;
  };
  // Positions in the sequence.
  struct Rows {
    std::uint64_t first;
    std::uint64_t count;
  };
  // The samples of a window in the order in which they are delivered.
  struct SortedWindow;
  std::vector<ShardPart> parts_of(std::uint64_t epoch) const;
  Rows rows_of(std::uint64_t index, std::uint64_t length) const noexcept;
  std::shared_ptr<const EpochTable> table(std::uint64_t epoch) const;
  std::shared_ptr<const SortedWindow> window(std::uint64_t epoch, std::uint64_t number) const;
  void check_sampling() const;
  bool permutes_few() const noexcept;
  std::string described(std::uint64_t drawn) const;
  void draw(std::uint64_t epoch, BatchIndices& out) const;
  bool has_table() const noexcept;
  void to_samples(std::uint64_t epoch, BatchIndices& out) const;
  void place(const EpochTable& sequence, std::span<std::uint64_t> positions) const;

  OrderOptions options_;
  std::vector<std::uint64_t> shard_begin_;  // prefix sums, one more than shards
  std::uint64_t samples_ = 0;
  // Null: each sample once.
  std::shared_ptr<const Sampling> sampling_;
  std::shared_ptr<TableCache> cache_;
  // Null: without buckets.
  std::shared_ptr<const BucketOrder> buckets_;
  std::uint64_t recipe_ = 0;
  // Null: samples are not sorted.
  std::shared_ptr<const LengthWindows> windows_;
};

}  // namespace shard
