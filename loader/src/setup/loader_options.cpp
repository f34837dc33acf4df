#include "setup/loader_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/system/cpu_count.hpp"
#include "base/text/quote.hpp"
#include "codec/stored_form.hpp"
#include "fields/delivered_columns.hpp"
#include "fields/fields.hpp"
#include "fields/views.hpp"
#include "shard/error.hpp"
#include "transform/arithmetic.hpp"

namespace shard {

namespace {

// They wait for answers, not for a CPU: the first batch of a shuffle needs the heads of as many
// shards as it has samples.
constexpr unsigned kRemoteThreads = 16;

unsigned default_threads() { return std::min(cpu_count(), 8U); }

// About how many bytes the samples of a batch have, decoded, on average: by the sizes of some shards that lie
// apart. With buckets, whose samples may be larger than others: of the bucket with the most. With
// length_window: of the batch of a window with the largest samples.
std::uint64_t mean_batch_bytes(const Dataset& dataset, const LoaderOptions& options) {
  constexpr std::size_t kShards = 8;
  const std::size_t shards = dataset.info().shards.size();
  const std::size_t asked = std::min(kShards, shards);
  const bool in_buckets = !options.buckets.empty();
  if (in_buckets) check_buckets(options.buckets);
  struct Sum {
    std::uint64_t bytes = 0;
    std::uint64_t samples = 0;
  };
  std::vector<Sum> sums(in_buckets ? options.buckets.size() : 1);
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < asked; ++i) {
    const ShardReader& shard = dataset.shard(static_cast<std::uint32_t>(i * shards / asked));
    for (std::uint64_t sample = 0; sample < shard.size(); ++sample) {
      const SampleSpec spec = shard.images().spec_of(sample);
      Sum& sum = sums[in_buckets ? bucket_of(spec.height, spec.width, options.buckets) : 0];
      sum.bytes += spec.size_bytes();
      ++sum.samples;
      if (options.length_window > 0) sizes.push_back(spec.size_bytes());
    }
  }
  if (!sizes.empty()) {
    const std::uint64_t global = options.batch_size * options.world_size;
    const std::uint64_t batches = (options.length_window + global - 1) / global;
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    sizes.resize((sizes.size() + batches - 1) / batches);
    sums[0] = {std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}), sizes.size()};
  }
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::uint64_t rows =
        in_buckets
            ? (options.global_batch_of(options.buckets[i]) + options.world_size - 1) / options.world_size
            : options.batch_size;
    most = std::max(most, sums[i].bytes / std::max<std::uint64_t>(sums[i].samples, 1) * rows);
  }
  return most;
}

// Whether samples are staged all the time, and not only until their shards are registered.
bool stages(const Dataset& dataset, const DeviceInfo& device, const LoaderOptions& options) {
  return options.transport == TransportKind::staged || options.transport == TransportKind::direct ||
         dataset.is_remote() || !device.registers_read_only ||
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
    if (!form->is_free()) {
      others += form->room_bytes(options);
      continue;
    }
    of_all += pixel_bytes(spec);
    late += kLateGroups * form->late_group_bytes(options);
  }
  const std::uint64_t pinned = options.memory.pinned_bytes;
  const std::uint64_t room = (pinned - std::min(pinned, late)) / 2;
  return (room - std::min(room, others)) / of_all * of_images;
}

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
  bytes = mean_batch_bytes(dataset, options) * 3 / 2;
  if (stages(dataset, device, options)) bytes = std::min(bytes, staged_room_bytes(info, options));
  bytes = std::max(bytes, largest);
}

}  // namespace

void check_fields(const DatasetInfo& info, const LoaderOptions& options) {
  const auto refuse = [](const FieldSpec& field, const std::string& why) {
    throw Error(ErrorCode::unsupported, fmt::format("field {}: {}", quoted(field.name), why));
  };
  bool patches = false;
  for (std::size_t view = 0; view < view_count(options); ++view)
    patches = patches || view_options(options, view).patch != 0;
  for (const FieldSpec& field : info.fields) {
    const auto asked = options.fields.find(field.name);
    if (asked == options.fields.end()) continue;
    const bool stored = asked->second.sampling == FieldSampling::stored;
    if (field.spec.is_free() && (stored || !info.spec.is_free()))
      refuse(field,
             fmt::format("its samples are of any size, {}; read them one by one, or convert with a size (for "
                         "example --resize 256 --crop 256)",
                         stored ? "and as stored they are no array: use nearest or bilinear"
                                : "but images have one, so it cannot follow them"));
    if (patches && !stored)
      refuse(field,
             "it cannot follow views in patches: use another view (letterbox, padded, buckets), or deliver "
             "patches without it");
  }
}

LoaderOptions check_loader_options(LoaderOptions options) {
  auto refuse = [](const std::string& message) { throw Error(ErrorCode::invalid_argument, message); };
  const auto check = [&](std::string_view name, const auto& value, const Limits& limits) {
    if (const std::string wrong = violation(name, value, limits); !wrong.empty()) refuse(wrong);
  };
  LoaderOptions::members(options, check);
  if (options.threads == 0) options.threads = default_threads();
  return options;
}

LoaderOptions check_loader_options(LoaderOptions options, const Dataset& dataset, const DeviceInfo& device) {
  if (options.threads == 0 && dataset.is_remote()) options.threads = kRemoteThreads;
  LoaderOptions checked = check_loader_options(std::move(options));
  check_fields(dataset.info(), checked);
  if (checked.buckets.empty() && (checked.batch_pixels != 0 || checked.bucket_crop != BucketCrop::center))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} belongs to buckets, which are not given",
                            checked.batch_pixels != 0
                                ? fmt::format("batch_pixels is {}, but it", checked.batch_pixels)
                                : std::string("bucket_crop is random, but it")));
  set_batch_bytes(dataset, device, checked);
  name_layouts(dataset.info(), checked);
  set_row_limits(dataset, checked);
  return checked;
}

std::vector<std::uint64_t> samples_of_shards(const DatasetInfo& info) {
  std::vector<std::uint64_t> samples;
  for (const ShardSummary& shard : info.shards) samples.push_back(shard.samples);
  return samples;
}

namespace {

// Calls visit(rows and columns) for each sample, in their order.
template <class Visit>
void for_each_stored_size(const Dataset& dataset, const LoaderOptions& options, const char* what,
                          const Visit& visit) {
  if (dataset.is_remote() && options.order != OrderMode::shuffle)
    throw Error(ErrorCode::unsupported, fmt::format("{} of a data set on a server needs order shuffle; make "
                                                    "a copy first for another order",
                                                    what));
  const std::uint64_t samples = dataset.size();
  for (std::uint64_t i = 0; i < samples; ++i) {
    const Dataset::Location at = dataset.locate(i);
    const SampleSpec spec = dataset.shard(at.shard).images().spec_of(at.sample);
    visit(SampleSize{spec.height, spec.width});
  }
}

Order make_bucket_order(const Dataset& dataset, const LoaderOptions& options) {
  check_buckets(options.buckets);
  std::vector<std::uint16_t> assignment;
  std::vector<std::uint64_t> global_batches;
  for (const Bucket& bucket : options.buckets) global_batches.push_back(options.global_batch_of(bucket));
  assignment.reserve(dataset.size());
  SampleSize last;
  std::uint16_t bucket = 0;
  for_each_stored_size(dataset, options, "loading in buckets", [&](const SampleSize& size) {
    if (size != last)
      bucket = static_cast<std::uint16_t>(bucket_of(size.height, size.width, options.buckets));
    last = size;
    assignment.push_back(bucket);
  });
  std::string recipe(words_of(options.bucket_crop)[static_cast<std::size_t>(options.bucket_crop)]);
  for (const Bucket& of : options.buckets) recipe += fmt::format(" {} x {}", of.height, of.width);
  return {samples_of_shards(dataset.info()), options, assignment, global_batches, xxh3(recipe)};
}

// Sorted by the sizes that the first padded view delivers. Its resize, longest, makes the same order whatever
// its number: that may change from run to run.
Order make_sorted_order(const Dataset& dataset, const LoaderOptions& options) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("length_window is {}, but {}: leave it out", options.length_window, why));
  };
  if (!options.buckets.empty()) refuse("samples of buckets are not padded");
  const std::vector<TransformOptions> views = views_of(options);
  const auto padded =
      std::find_if(views.begin(), views.end(), [](const TransformOptions& view) { return view.padded != 0; });
  if (padded == views.end()) refuse("no view is padded");
  const SampleSpec& stored = dataset.info().spec;
  if (!stored.is_free()) refuse(fmt::format("all samples are {} x {}", stored.height, stored.width));
  TransformOptions view = *padded;
  if (view.resize != ResizeKind::none) view.resize_height = view.resize_width = kMaxResized;
  std::vector<std::uint32_t> sizes;
  sizes.reserve(dataset.size());
  for_each_stored_size(dataset, options, "length_window", [&](const SampleSize& size) {
    const SampleSize made = padded_size(stored.sized(size.height, size.width), view);
    sizes.push_back(made.height << 16U | made.width);
  });
  return {samples_of_shards(dataset.info()), options, std::move(sizes), options.length_window};
}

}  // namespace

Order make_order(const Dataset& dataset, const LoaderOptions& options) {
  if (options.length_window != 0) return make_sorted_order(dataset, options);
  if (!options.buckets.empty()) return make_bucket_order(dataset, options);
  return {samples_of_shards(dataset.info()), options};
}

}  // namespace shard
