#include "setup/batch_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "codec/stored_form.hpp"
#include "fields/fields.hpp"
#include "fields/views.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

constexpr std::size_t kShards = 8;  // whose samples are looked at
constexpr double kMost = 0.5;       // of the mean, beyond it
// Standard deviations beyond the mean: one batch in 30,000 has more, if sizes are distributed normally.
constexpr double kOfBatch = 4;
constexpr double kOfMean = 3;

// Bytes of samples, decoded.
struct Sizes {
  double samples = 0;
  double bytes = 0;
  double squares = 0;
  double mean() const { return bytes / std::max(samples, 1.0); }
  double variance() const { return std::max(squares / std::max(samples, 1.0) - mean() * mean(), 0.0); }
  void add(double size) {
    ++samples;
    bytes += size;
    squares += size * size;
  }
};

std::uint64_t rows_of(const LoaderOptions& options, const Bucket& bucket) {
  return (options.global_batch_of(bucket) + options.world_size - 1) / options.world_size;
}

// Of shards that lie apart: their samples, by bucket, and the means of the shards.
struct Seen {
  std::vector<Sizes> samples;
  Sizes shards;
  std::vector<double> sorted;  // length_window: all sizes, the largest first
  bool all = false;            // these are all shards
};

Seen look(const Dataset& dataset, const LoaderOptions& options) {
  const std::vector<Bucket>& buckets = options.buckets;
  const std::size_t shards = dataset.info().shards.size();
  const std::size_t asked = std::min(kShards, shards);
  Seen seen;
  seen.all = asked == shards;
  seen.samples.resize(std::max<std::size_t>(buckets.size(), 1));
  for (std::size_t i = 0; i < asked; ++i) {
    const ShardReader& shard = dataset.shard(static_cast<std::uint32_t>(i * shards / asked));
    Sizes of_shard;
    for (std::uint64_t sample = 0; sample < shard.size(); ++sample) {
      const SampleSpec spec = shard.images().spec_of(sample);
      const auto bytes = static_cast<double>(spec.size_bytes());
      seen.samples[buckets.empty() ? 0 : bucket_of(spec.height, spec.width, buckets)].add(bytes);
      of_shard.add(bytes);
      if (options.length_window > 0) seen.sorted.push_back(bytes);
    }
    seen.shards.add(of_shard.mean());
  }
  std::sort(seen.sorted.begin(), seen.sorted.end(), std::greater<>());
  return seen;
}

// length_window: the mean of the samples in the batch of a window that has the largest.
double mean_of_largest(const Seen& seen, const LoaderOptions& options) {
  const std::uint64_t global = options.batch_size * options.world_size;
  const std::uint64_t batches = (options.length_window + global - 1) / global;
  const std::size_t count = (seen.sorted.size() + batches - 1) / batches;
  return std::accumulate(seen.sorted.begin(), seen.sorted.begin() + static_cast<std::ptrdiff_t>(count), 0.0) /
         static_cast<double>(std::max<std::size_t>(count, 1));
}

// What nearly all batches have at most. Sizes of samples that lie together may be alike, and so may be those
// of a bucket or of what is drawn, so only a plain shuffle is known to have batches that are like the mean.
std::uint64_t usual_batch_bytes(const Dataset& dataset, const LoaderOptions& options) {
  if (!options.buckets.empty()) check_buckets(options.buckets);
  const Seen seen = look(dataset, options);
  if (options.length_window > 0)
    return static_cast<std::uint64_t>(mean_of_largest(seen, options) *
                                      static_cast<double>(options.batch_size) * (1 + kMost));
  double most = 0;
  for (std::size_t i = 0; i < seen.samples.size(); ++i) {
    const Sizes& sizes = seen.samples[i];
    const auto rows = static_cast<double>(options.buckets.empty() ? options.batch_size
                                                                  : rows_of(options, options.buckets[i]));
    double beyond = kMost;
    const bool alike =
        options.buckets.empty() && !walks_shards(options) && !options.sampling && options.repeats == 1;
    if (alike && sizes.bytes > 0) {
      const double of_mean = seen.all ? 0 : std::sqrt(seen.shards.variance() / seen.shards.samples);
      beyond = (kOfBatch * std::sqrt(sizes.variance() / rows) + kOfMean * of_mean) / sizes.mean();
    }
    most = std::max(most, sizes.mean() * rows * (1 + std::min(beyond, kMost)));
  }
  return static_cast<std::uint64_t>(most);
}

// Whether samples are staged all the time, and not only until their shards are registered.
bool stages(const Dataset& dataset, const DeviceInfo& device, const LoaderOptions& options) {
  return options.transport == TransportKind::staged || options.transport == TransportKind::direct ||
         dataset.is_remote() || dataset.is_unconverted() || !device.registers_read_only ||
         make_stored_form(dataset.info())->decoded_by_host();
}

// How many bytes the images of a batch may have, if pinned_bytes has room for at least two buffers, in which
// their further fields lie too, beside groups of late samples.
std::uint64_t staged_room_bytes(const DatasetInfo& info, const LoaderOptions& options) {
  const auto pixel_bytes = [](const SampleSpec& spec) {
    return std::uint64_t{spec.channels} * size_bytes(spec.dtype);
  };
  const std::uint64_t of_images = pixel_bytes(info.spec);
  std::uint64_t of_all = 0;
  std::uint64_t others = 0;  // of one size
  std::uint64_t late = 0;
  for (const auto& form : stored_forms(info, options)) {
    const SampleSpec& spec = form->recorded();
    if (!form->is_free() || form->decodes_in_parts()) {  // whose room does not follow batch_bytes
      others += form->room_bytes(options);
      continue;
    }
    of_all += pixel_bytes(spec);
    late += kLateGroups * form->late_group_bytes(options);
  }
  const std::uint64_t pinned = options.memory.pinned_bytes;
  const std::uint64_t room = (pinned - std::min(pinned, late)) / 2;
  if (of_all == 0) return ~std::uint64_t{0};
  return (room - std::min(room, others)) / of_all * of_images;
}

}  // namespace

void set_batch_bytes(const Dataset& dataset, const DeviceInfo& device, LoaderOptions& options) {
  const DatasetInfo& info = dataset.info();
  if (!info.spec.is_free()) return;
  const std::uint64_t largest = info.largest().sample_bytes * (options.mix.enabled() ? 2 : 1);
  std::uint64_t& bytes = options.memory.batch_bytes;
  if (bytes != 0 && bytes < largest)
    throw Error(
        ErrorCode::resource,
        fmt::format("batch_bytes is {}, but the largest sample has {} bytes{}: raise it, or leave it out",
                    bytes, info.largest().sample_bytes,
                    options.mix.enabled() ? ", and two of them are mixed" : ""));
  if (bytes != 0) return;
  bytes = usual_batch_bytes(dataset, options);
  if (stages(dataset, device, options)) bytes = std::min(bytes, staged_room_bytes(info, options));
  bytes = std::max(bytes, largest);
}

}  // namespace shard
