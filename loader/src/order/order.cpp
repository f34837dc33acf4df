#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <numeric>

#include "order/bucket_order.hpp"
#include "order/epoch_key.hpp"
#include "order/length_windows.hpp"
#include "order/order_cache.hpp"
#include "order/part_begin.hpp"
#include "shard/error.hpp"
#include "shard/loader/order.hpp"

namespace shard {

namespace {

// Buckets have tails of their own.
OrderOptions with_short_tail(OrderOptions options) {
  options.tail = Tail::short_;
  return options;
}

}  // namespace

bool walks_shards(const OrderOptions& options) noexcept {
  return options.order != OrderMode::shuffle || options.partition == Partition::by_shard;
}

// The shards of one epoch that this rank walks, in sequence, cut into windows inside which samples are
// permuted.
struct Order::EpochTable {
  std::uint64_t epoch = 0;
  std::vector<std::uint32_t> shards;
  // Samples of each shard that belong to other ranks and come before this rank's (by_shard with tail short).
  std::vector<std::uint64_t> skipped;
  std::vector<std::uint64_t> begin;         // of each shard in the sequence; one more than shards
  std::vector<std::uint64_t> window_begin;  // positions; one more than windows
  std::uint64_t samples() const noexcept { return begin.back(); }
};

Order::Order(std::span<const std::uint64_t> shard_samples, const OrderOptions& options)
    : options_(options), shard_begin_(1, 0), cache_(std::make_shared<TableCache>()) {
  auto refuse = [](const std::string& message) { throw Error(ErrorCode::invalid_argument, message); };
  for (std::uint64_t n : shard_samples) shard_begin_.push_back(shard_begin_.back() + n);
  samples_ = shard_begin_.back();
  if (samples_ == 0) refuse("the data set has no samples: nothing to load");
  const auto check = [&](std::string_view name, const auto& value, const Limits& limits) {
    if (const std::string wrong = violation(name, value, limits); !wrong.empty()) refuse(wrong);
  };
  OrderOptions::members(options, check);
  if (options.world_size < 1 || options.rank >= options.world_size)
    refuse(fmt::format("rank is {} and world_size {}: rank must be 0 to world_size - 1", options.rank,
                       options.world_size));
  const std::ptrdiff_t empty = std::count(shard_samples.begin(), shard_samples.end(), 0U);
  const std::uint64_t filled = shard_samples.size() - static_cast<std::uint64_t>(empty);
  if (options.partition == Partition::by_shard && filled < options.world_size)
    refuse(fmt::format("partition by_shard needs a shard for each of the {} ranks; there are {}",
                       options.world_size, filled));
  check_sampling();
  const bool once = options.samples_per_epoch == 0 && options.repeats == 1;
  sampling_ = options.sampling || once ? options.sampling : Sampling::uniform(samples_, false);
  if (batches() == 0)
    refuse(fmt::format(
        "tail 'drop' leaves no batch: {} samples are fewer than the global batch of {} x {}; use a smaller "
        "batch_size, or tail pad, wrap or short",
        positions(), options.batch_size, options.world_size));
}

Order::Order(std::span<const std::uint64_t> shard_samples, const OrderOptions& options,
             std::span<const std::uint16_t> assignment, std::span<const std::uint64_t> global_batches,
             std::uint64_t recipe)
    : Order(shard_samples, with_short_tail(options)) {
  if (options.repeats != 1 || options.partition != Partition::global)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}; buckets need repeats 1 and partition global",
                            options.repeats != 1 ? fmt::format("repeats is {}", options.repeats)
                                                 : std::string("partition is by_shard")));
  options_ = options;
  recipe_ = recipe;
  buckets_ = std::make_shared<const BucketOrder>(
      assignment, global_batches,
      BucketOrderOptions{options.rank, options.world_size, options.order, options.tail, options.seed,
                         sampling_, positions()});
}

std::vector<std::uint64_t> Order::left_out() const {
  return buckets_ ? buckets_->left_out() : std::vector<std::uint64_t>();
}

void Order::check_sampling() const {
  auto refuse = [](const std::string& message) { throw Error(ErrorCode::invalid_argument, message); };
  const std::uint64_t global = options_.batch_size * options_.world_size;
  if (options_.repeats < 1 || global % options_.repeats != 0)
    refuse(fmt::format("repeats is {}; it must divide the global batch of {} x {}", options_.repeats,
                       options_.batch_size, options_.world_size));
  const bool plain = !options_.sampling && options_.samples_per_epoch == 0 && options_.repeats == 1;
  if (plain) return;
  if (options_.order != OrderMode::shuffle || options_.partition != Partition::global)
    refuse("sampling, samples_per_epoch and repeats need order shuffle and partition global");
  if (!options_.sampling) return;
  if (options_.sampling->samples() != samples_)
    refuse(fmt::format("the sampling is for {} samples; the data set has {}: make it from this data set",
                       options_.sampling->samples(), samples_));
  const std::uint64_t longest = options_.sampling->longest_epoch();
  const std::uint64_t drawn = (positions() + options_.repeats - 1) / options_.repeats;
  if (longest != 0 && drawn > longest)
    refuse(fmt::format(
        "an epoch draws {} samples, but only {} have a weight above 0: set samples_per_epoch to at "
        "most {}, or draw with replacement",
        drawn, longest, longest * options_.repeats));
}

std::uint64_t Order::positions() const noexcept {
  return options_.samples_per_epoch != 0 ? options_.samples_per_epoch : samples_;
}

std::uint64_t Order::batches() const noexcept {
  if (buckets_) return buckets_->batches();
  const std::uint64_t global = options_.batch_size * options_.world_size;
  return options_.tail == Tail::drop ? positions() / global : (positions() + global - 1) / global;
}

std::uint64_t Order::samples_of_rank() const noexcept {
  const bool same_each_epoch =
      options_.order == OrderMode::sequential && options_.partition == Partition::global && !buckets_;
  return same_each_epoch ? std::min(samples_, batches() * options_.batch_size) : samples_;
}

// The parts of shards that this rank reads in this epoch, in the epoch's order of shards.
std::vector<Order::ShardPart> Order::parts_of(std::uint64_t epoch) const {
  const std::uint64_t shards = shard_begin_.size() - 1;
  const Permutation permuted(shards, epoch_key(options_.seed, epoch, kShards));
  const bool by_shard = options_.partition == Partition::by_shard;
  // Tail short: the samples are divided evenly, so that the parts of two ranks differ by at most one sample.
  const bool cut = by_shard && options_.tail == Tail::short_;
  const std::uint64_t first = cut ? part_begin(samples_, options_.rank, options_.world_size) : 0;
  const std::uint64_t last =
      cut ? part_begin(samples_, options_.rank + std::uint64_t{1}, options_.world_size) : 0;
  std::vector<ShardPart> parts;
  std::uint64_t position = 0;
  std::uint64_t dealt = 0;  // shards to all ranks, but for empty ones
  for (std::uint64_t i = 0; i < shards; ++i) {
    const std::uint64_t shard = options_.order == OrderMode::sequential && !by_shard ? i : permuted(i);
    const std::uint64_t samples = shard_begin_[shard + 1] - shard_begin_[shard];
    if (by_shard && samples == 0) continue;
    const bool own = cut || !by_shard || dealt++ % options_.world_size == options_.rank;
    if (!own) continue;
    const std::uint64_t begin = cut ? std::max(position, first) : position;
    const std::uint64_t end = cut ? std::min(position + samples, last) : position + samples;
    if (!cut || begin < end)
      parts.push_back({static_cast<std::uint32_t>(shard), begin - position, end - begin});
    position += samples;
  }
  return parts;
}

std::shared_ptr<const Order::EpochTable> Order::table(std::uint64_t epoch) const {
  std::lock_guard lock(cache_->mutex);
  auto cached = std::static_pointer_cast<const EpochTable>(cache_->table);
  if (cached && cached->epoch == epoch) return cached;
  auto fresh = std::make_shared<EpochTable>();
  fresh->epoch = epoch;
  std::vector<ShardPart> parts = parts_of(epoch);
  if (options_.order == OrderMode::sequential)
    std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.shard < b.shard; });
  fresh->begin.push_back(0);
  fresh->window_begin.push_back(0);
  const std::uint64_t window = options_.order == OrderMode::windowed
                                   ? options_.window_shards
                                   : std::max<std::uint64_t>(1, parts.size());
  for (std::uint64_t i = 0; i < parts.size(); ++i) {
    fresh->shards.push_back(parts[i].shard);
    fresh->skipped.push_back(parts[i].skipped);
    fresh->begin.push_back(fresh->begin.back() + parts[i].samples);
    if ((i + 1) % window == 0 || i + 1 == parts.size()) fresh->window_begin.push_back(fresh->begin.back());
  }
  cache_->table = fresh;
  return fresh;
}

// The positions of batch `index` in a sequence of `length`: with by_shard this rank's own one, else that of
// all ranks.
Order::Rows Order::rows_of(std::uint64_t index, std::uint64_t length) const noexcept {
  const std::uint64_t size = options_.batch_size;
  const bool by_shard = options_.partition == Partition::by_shard;
  if (options_.tail != Tail::short_)
    return {(by_shard ? index : index * options_.world_size + options_.rank) * size, size};
  const std::uint64_t world = by_shard ? 1 : options_.world_size;
  const std::uint64_t begin = std::min(index * world * size, length);  // of the global batch
  const std::uint64_t rows = std::min(world * size, length - begin);
  const std::uint64_t rank = by_shard ? 0 : options_.rank;
  const std::uint64_t first = part_begin(rows, rank, world);
  return {begin + first, part_begin(rows, rank + 1, world) - first};
}

void Order::batch(std::uint64_t epoch, std::uint64_t index, BatchIndices& out) const {
  out.bucket = 0;
  if (buckets_) {
    out.bucket = buckets_->batch(epoch, index, out);
    return;
  }
  if (index >= batches())
    throw Error(ErrorCode::invalid_argument, fmt::format("batch {} of {} in an epoch", index, batches()));
  const std::uint64_t length = has_table() ? table(epoch)->samples() : positions();
  const Rows rows = rows_of(index, length);
  out.samples.resize(rows.count);
  out.mask.assign(rows.count, 1);
  for (std::uint64_t k = 0; k < rows.count; ++k) {
    const std::uint64_t position = rows.first + k;
    out.samples[k] = position < length ? position : position % length;
    if (position >= length && options_.tail == Tail::pad) out.mask[k] = 0;
  }
  to_samples(epoch, out);
  if (!windows_ || rows.first >= length || rows.count == 0) return;
  // What fills up a tail is not sorted.
  const std::uint64_t number = rows.first / windows_->positions();
  const auto from = static_cast<std::ptrdiff_t>(rows.first - number * windows_->positions());
  const std::shared_ptr<const SortedWindow> sorted = window(epoch, number);
  const std::uint64_t count = std::min(rows.count, length - rows.first);
  std::copy_n(sorted->samples.begin() + from, count, out.samples.begin());
  std::copy_n(sorted->draws.begin() + from, count, out.draws.begin());
}

bool Order::has_table() const noexcept {
  return options_.order == OrderMode::windowed || options_.partition == Partition::by_shard;
}

// Replaces positions in the epoch's sequence by samples, and says by what their augmentation is drawn.
void Order::to_samples(std::uint64_t epoch, BatchIndices& out) const {
  if (sampling_) return draw(epoch, out);
  if (has_table())
    place(*table(epoch), out.samples);
  else if (options_.order == OrderMode::shuffle)
    Permutation(samples_, epoch_key(options_.seed, epoch, kSamples)).apply(out.samples);
  out.draws = out.samples;
}

// Replaces positions by samples. With repeats k, the rows of a global batch of b samples are k times the same
// b / k draws, one after the other.
void Order::draw(std::uint64_t epoch, BatchIndices& out) const {
  const std::uint64_t repeats = options_.repeats;
  const std::uint64_t global = options_.batch_size * options_.world_size;
  const std::uint64_t last = positions() / global * global;  // where a short last batch begins
  const std::uint64_t drawn_in_last = (positions() - last + repeats - 1) / repeats;
  out.draws = out.samples;
  for (std::uint64_t& position : out.samples) {
    const std::uint64_t begin = position / global * global;
    const std::uint64_t draws = begin < last ? global / repeats : drawn_in_last;
    position = begin / repeats + (position - begin) % draws;
  }
  for (std::uint64_t& draw : out.draws) draw |= std::uint64_t{1} << 63U;
  sampling_->draw({options_.seed, epoch, last / repeats + drawn_in_last}, out.samples);
}

std::vector<std::uint32_t> Order::shards_of(std::uint64_t epoch) const {
  return walks_shards(options_) ? table(epoch)->shards : std::vector<std::uint32_t>();
}

Order::Places Order::places(std::uint64_t epoch, std::uint64_t index) const {
  const std::shared_ptr<const EpochTable> sequence = table(epoch);
  const std::uint64_t samples = sequence->samples();
  Rows rows = rows_of(index, samples);
  if (rows.count == 0) return {sequence->shards.size(), sequence->shards.size()};
  if (windows_ && rows.first < samples)
    rows = {rows.first / windows_->positions() * windows_->positions(), windows_->positions()};
  std::uint64_t first = rows.first % samples;
  std::uint64_t last = std::min(first + rows.count, samples) - 1;
  if (options_.order != OrderMode::sequential) {
    const auto& windows = sequence->window_begin;
    first = *std::prev(std::upper_bound(windows.begin(), windows.end(), first));
    last = *std::upper_bound(windows.begin(), windows.end(), last) - 1;
  }
  const auto place = [&](std::uint64_t position) {
    const auto& begin = sequence->begin;
    return static_cast<std::size_t>(std::upper_bound(begin.begin(), begin.end(), position) - begin.begin()) -
           1;
  };
  return {place(first), place(last) + 1};
}

std::vector<std::uint32_t> Order::shards_from(std::uint64_t epoch, std::uint64_t index,
                                              std::size_t at_most) const {
  if (!walks_shards(options_)) return {};
  const std::shared_ptr<const EpochTable> sequence = table(epoch);
  const auto from = sequence->shards.begin() + static_cast<std::ptrdiff_t>(places(epoch, index).first);
  return {from, from + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(at_most),
                                                sequence->shards.end() - from)};
}

// Replaces positions in the epoch's sequence by indices in the data set.
void Order::place(const EpochTable& sequence, std::span<std::uint64_t> positions) const {
  for (std::size_t first = 0; options_.order != OrderMode::sequential && first < positions.size();) {
    // Positions of one window, one after the other.
    const auto& windows = sequence.window_begin;
    const auto after = std::upper_bound(windows.begin(), windows.end(), positions[first]);
    const std::uint64_t begin = *std::prev(after);
    std::size_t last = first;
    for (; last < positions.size() && positions[last] >= begin && positions[last] < *after; ++last)
      positions[last] -= begin;
    const auto window = static_cast<std::uint64_t>(after - windows.begin());
    const Permutation inside(*after - begin,
                             epoch_key(options_.seed, sequence.epoch, mix64(kSamples) ^ window));
    inside.apply(positions.subspan(first, last - first));
    for (; first < last; ++first) positions[first] += begin;
  }
  for (std::uint64_t& position : positions) {
    const auto after = std::upper_bound(sequence.begin.begin(), sequence.begin.end(), position);
    const auto at = static_cast<std::size_t>(after - sequence.begin.begin()) - 1;
    position = shard_begin_[sequence.shards[at]] + sequence.skipped[at] + position - sequence.begin[at];
  }
}

}  // namespace shard
