#include "order/bucket_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/digest/mix64.hpp"
#include "order/epoch_key.hpp"
#include "order/part_begin.hpp"
#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"
#include "shard/loader/buckets.hpp"

namespace shard {

namespace {

constexpr std::uint64_t kMaxRankBatch = 65'536;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

std::uint64_t area_of(const Bucket& bucket) noexcept { return std::uint64_t{bucket.height} * bucket.width; }

// By width / height.
bool narrower(const Bucket& a, const Bucket& b) noexcept {
  return std::uint64_t{a.width} * b.height < std::uint64_t{b.width} * a.height;
}

// The share of a sample that is left of it in a bucket: part / whole.
struct Share {
  std::uint64_t part;
  std::uint64_t whole;
};

// < 0, 0 or > 0 as in memcmp.
int compare(const Share& a, const Share& b) noexcept {
  const auto left = static_cast<unsigned __int128>(a.part) * b.whole;
  const auto right = static_cast<unsigned __int128>(b.part) * a.whole;
  return left < right ? -1 : left > right ? 1 : 0;
}

void check_any(std::span<const Bucket> buckets) {
  if (buckets.empty()) refuse("the list of buckets is empty; it must have at least 1");
}

void check_sides(std::span<const Bucket> buckets, std::size_t at) {
  if (buckets[at].height == 0 || buckets[at].width == 0)
    refuse(fmt::format("bucket {} is {} x {} pixels; both sides must be at least 1", at, buckets[at].height,
                       buckets[at].width));
}

}  // namespace

void check_buckets(std::span<const Bucket> buckets) {
  check_any(buckets);
  if (buckets.size() > kMaxBuckets)
    refuse(fmt::format("there are {} buckets; there can be at most {}", buckets.size(), kMaxBuckets));
  for (std::size_t i = 0; i < buckets.size(); ++i) check_sides(buckets, i);
  std::vector<Bucket> sorted(buckets.begin(), buckets.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    refuse(fmt::format("bucket {} x {} is in the list more than once; list it once", twice->height,
                       twice->width));
}

std::size_t bucket_of(std::uint32_t height, std::uint32_t width, std::span<const Bucket> buckets) {
  check_any(buckets);
  if (height == 0 || width == 0)
    refuse(fmt::format("a sample is {} x {} pixels; both sides must be at least 1", height, width));
  std::size_t best = 0;
  Share most{0, 1};
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    check_sides(buckets, i);
    const std::uint64_t across = std::uint64_t{width} * buckets[i].height;
    const std::uint64_t down = std::uint64_t{height} * buckets[i].width;
    const Share share{std::min(across, down), std::max(across, down)};
    const int more = compare(share, most);
    if (more > 0 || (more == 0 && area_of(buckets[i]) > area_of(buckets[best]))) {
      best = i;
      most = share;
    }
  }
  return best;
}

std::vector<Bucket> make_buckets(std::uint64_t area, std::uint32_t step, double max_aspect) {
  if (step < 1 || step > kMaxSide)
    refuse(fmt::format("step is {} pixels; it must be 1 to {}", step, kMaxSide));
  if (!(max_aspect >= 1)) refuse(fmt::format("max_aspect is {}; it must be at least 1", max_aspect));
  constexpr std::uint64_t kMaxArea = std::uint64_t{kMaxSide} * kMaxSide;
  const std::uint64_t least = std::uint64_t{step} * step;
  if (area < least || area > kMaxArea)
    refuse(fmt::format("area is {} pixels; with step {} it must be {} to {}", area, step, least, kMaxArea));

  std::vector<Bucket> buckets;
  const auto add = [&](std::uint64_t height, std::uint64_t width) {
    if (static_cast<double>(std::max(height, width)) <=
        max_aspect * static_cast<double>(std::min(height, width)))
      buckets.push_back({static_cast<std::uint32_t>(height), static_cast<std::uint32_t>(width)});
  };
  std::uint64_t square = step;
  while ((square + step) * (square + step) <= area) square += step;
  add(square, square);
  for (std::uint64_t width = step; width <= kMaxSide; width += step) {
    const std::uint64_t height = std::min<std::uint64_t>(area / width, kMaxSide) / step * step;
    if (height == 0) break;
    add(height, width);
    add(width, height);
  }
  // Of two different buckets with one aspect ratio, the smaller one would not have the largest height.
  std::sort(buckets.begin(), buckets.end(), narrower);
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  if (buckets.size() > kMaxBuckets)
    refuse(fmt::format("step {} gives {} buckets; there can be at most {}: use a larger step", step,
                       buckets.size(), kMaxBuckets));
  return buckets;
}

BucketOrder::BucketOrder(std::span<const std::uint16_t> assignment,
                         std::span<const std::uint64_t> global_batches, const BucketOrderOptions& options)
    : options_(options),
      global_batches_(global_batches.begin(), global_batches.end()),
      sample_begin_(global_batches.size() + 1),
      batch_begin_(global_batches.size() + 1) {
  if (global_batches.empty() || global_batches.size() > kMaxBuckets)
    refuse(fmt::format("there are {} buckets; there must be 1 to {}", global_batches.size(), kMaxBuckets));
  if (assignment.empty()) refuse("the data set has no samples: nothing to load");
  constexpr std::uint64_t kMaxSamples = std::numeric_limits<std::uint32_t>::max();
  if (assignment.size() > kMaxSamples)
    refuse(fmt::format("the data set has {} samples; at most {} can be delivered in buckets",
                       assignment.size(), kMaxSamples));
  if (options.world_size < 1 || options.rank >= options.world_size)
    refuse(fmt::format("rank is {} and world_size {}: rank must be 0 to world_size - 1", options.rank,
                       options.world_size));
  if (options.order != OrderMode::sequential && options.order != OrderMode::shuffle)
    refuse("order is windowed; with buckets it must be sequential or shuffle");
  if (options.sampling && options.order != OrderMode::shuffle)
    refuse("order is sequential; with a sampling it must be shuffle");
  const std::uint64_t largest = kMaxRankBatch * options.world_size;
  for (std::size_t bucket = 0; bucket < buckets(); ++bucket)
    if (global_batches[bucket] < 1 || global_batches[bucket] > largest)
      refuse(fmt::format("the global batch of bucket {} is {} samples; with {} ranks it must be 1 to {}",
                         bucket, global_batches[bucket], options.world_size, largest));

  for (std::size_t i = 0; i < assignment.size(); ++i) {
    if (assignment[i] >= buckets())
      refuse(fmt::format("the bucket of sample {} is {}; there are {} buckets: it must be 0 to {}", i,
                         assignment[i], buckets(), buckets() - 1));
    ++sample_begin_[assignment[i] + std::size_t{1}];
  }
  std::partial_sum(sample_begin_.begin(), sample_begin_.end(), sample_begin_.begin());
  position_begin_ = sample_begin_;
  if (options_.sampling) share_draws(assignment);
  for (std::size_t bucket = 0; bucket < buckets(); ++bucket) {
    const std::uint64_t rows = positions_of(bucket);
    const std::uint64_t size = global_batches[bucket];
    const std::uint64_t batches = options.tail == Tail::drop ? rows / size : (rows + size - 1) / size;
    batch_begin_[bucket + 1] = batch_begin_[bucket] + batches;
  }
  if (batches() == 0)
    refuse(
        fmt::format("tail 'drop' leaves no batch: none of the {} buckets has as many samples as its "
                    "global batch; an epoch has {} samples: use smaller batches, fewer buckets, or "
                    "tail pad, wrap or short",
                    buckets(), position_begin_.back()));

  samples_.resize(assignment.size());
  std::vector<std::uint64_t> seen(buckets());
  for (std::size_t i = 0; i < assignment.size(); ++i) {
    const std::size_t bucket = assignment[i];
    const std::uint64_t place = seen[bucket]++;
    samples_[sample_begin_[bucket] + place] = static_cast<std::uint32_t>(i);
    if (options.order != OrderMode::sequential || place % global_batches[bucket] != 0) continue;
    const std::uint64_t batch = batch_begin_[bucket] + place / global_batches[bucket];
    if (batch < batch_begin_[bucket + 1]) in_sequence_.push_back(static_cast<std::uint32_t>(batch));
  }
  assignment_digest_ = xxh3(std::as_bytes(assignment));
}

// How many draws of an epoch each bucket has.
void BucketOrder::share_draws(std::span<const std::uint16_t> assignment) {
  shares_ = options_.sampling->split(assignment, buckets());
  std::vector<std::uint64_t> draws(buckets());
  std::vector<std::uint64_t> most(buckets());
  for (std::size_t bucket = 0; bucket < buckets(); ++bucket) {
    if (!shares_[bucket].sampling) continue;
    const std::uint64_t longest = shares_[bucket].sampling->longest_epoch();
    most[bucket] = longest == 0 ? std::numeric_limits<std::uint64_t>::max() : longest;
  }
  // Where a bucket has not as many, what is left goes to the others.
  for (std::uint64_t left = options_.draws; left != 0;) {
    double open = 0;
    for (std::size_t bucket = 0; bucket < buckets(); ++bucket)
      if (draws[bucket] < most[bucket]) open += shares_[bucket].proportion;
    if (open == 0)
      refuse(
          fmt::format("an epoch draws {} samples, but only {} have a weight above 0: set "
                      "samples_per_epoch to at most {}, or draw with replacement",
                      options_.draws, options_.draws - left, options_.draws - left));
    std::vector<std::pair<double, std::size_t>> remainders;
    const std::uint64_t to_share = left;
    for (std::size_t bucket = 0; bucket < buckets(); ++bucket) {
      if (draws[bucket] >= most[bucket]) continue;
      const double exact = static_cast<double>(to_share) * (shares_[bucket].proportion / open);
      const std::uint64_t more =
          std::min({static_cast<std::uint64_t>(exact), most[bucket] - draws[bucket], left});
      draws[bucket] += more;
      left -= more;
      remainders.emplace_back(std::floor(exact) - exact, bucket);  // the largest comes first
    }
    std::sort(remainders.begin(), remainders.end());
    for (const auto& [remainder, bucket] : remainders) {
      if (left == 0) break;
      if (draws[bucket] >= most[bucket]) continue;
      ++draws[bucket];
      --left;
    }
  }
  for (std::size_t bucket = 0; bucket < buckets(); ++bucket)
    position_begin_[bucket + 1] = position_begin_[bucket] + draws[bucket];
}

std::size_t BucketOrder::batch(std::uint64_t epoch, std::uint64_t index, BatchIndices& out) const {
  if (index >= batches())
    refuse(fmt::format("there is no batch {}; an epoch has batches 0 to {}", index, batches() - 1));
  const bool shuffled = options_.order == OrderMode::shuffle;
  const std::uint64_t batch =
      shuffled ? Permutation(batches(), epoch_key(options_.seed, epoch, kBucketBatches))(index)
               : in_sequence_[index];
  const auto after = std::upper_bound(batch_begin_.begin(), batch_begin_.end(), batch);
  const auto bucket = static_cast<std::size_t>(after - batch_begin_.begin()) - 1;

  const std::uint64_t length = positions_of(bucket);
  const std::uint64_t size = global_batches_[bucket];
  const std::uint64_t begin = (batch - batch_begin_[bucket]) * size;
  const std::uint64_t rows = options_.tail == Tail::short_ ? std::min(size, length - begin) : size;
  const std::uint64_t first = part_begin(rows, options_.rank, options_.world_size);
  const std::uint64_t last = part_begin(rows, options_.rank + std::uint64_t{1}, options_.world_size);
  out.samples.resize(last - first);
  out.mask.assign(last - first, 1);
  for (std::uint64_t k = 0; k < last - first; ++k) {
    const std::uint64_t position = begin + first + k;
    out.samples[k] = position % length;
    if (position >= length && options_.tail == Tail::pad) out.mask[k] = 0;
  }
  if (!shares_.empty()) {
    out.draws.resize(out.samples.size());
    for (std::size_t k = 0; k < out.samples.size(); ++k)
      out.draws[k] = (position_begin_[bucket] + out.samples[k]) | std::uint64_t{1} << 63U;
    const std::uint64_t seed = mix64(mix64(options_.seed ^ mix64(kBucketDraws)) ^ bucket);
    shares_[bucket].sampling->draw({seed, epoch, length}, out.samples);
  } else if (shuffled) {
    Permutation(length, epoch_key(options_.seed, epoch, mix64(kBucketSamples) ^ bucket)).apply(out.samples);
  }
  for (std::uint64_t& sample : out.samples) sample = samples_[sample_begin_[bucket] + sample];
  if (shares_.empty()) out.draws = out.samples;
  return bucket;
}

std::vector<std::uint64_t> BucketOrder::left_out() const {
  std::vector<std::uint64_t> counts(buckets());
  if (options_.tail != Tail::drop) return counts;
  for (std::size_t bucket = 0; bucket < buckets(); ++bucket)
    counts[bucket] = positions_of(bucket) % global_batches_[bucket];
  return counts;
}

std::uint64_t BucketOrder::digest() const {
  std::string text =
      fmt::format("buckets mode {} tail {} samples {} {}", static_cast<int>(options_.order),
                  static_cast<int>(options_.tail), samples_.size(), to_hex(assignment_digest_));
  for (std::size_t bucket = 0; bucket < buckets(); ++bucket)
    if (samples_of(bucket) != 0) text += fmt::format(" {} of {}", bucket, global_batches_[bucket]);
  if (options_.sampling)
    text += fmt::format(" epoch {} drawn {}", options_.draws, to_hex(options_.sampling->digest()));
  return xxh3(text);
}

}  // namespace shard
