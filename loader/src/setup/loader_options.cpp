#include "setup/loader_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/system/cpu_count.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "codec/stored_form.hpp"
#include "fields/delivered_columns.hpp"
#include "fields/fields.hpp"
#include "fields/views.hpp"
#include "format/dataset/frame_view.hpp"
#include "setup/batch_bytes.hpp"
#include "setup/together.hpp"
#include "shard/error.hpp"
#include "transform/arithmetic.hpp"

namespace shard {

namespace {

// They wait for answers, not for a CPU: the first batch of a shuffle needs the heads of as many
// shards as it has samples.
constexpr unsigned kRemoteThreads = 16;
constexpr std::uint32_t kPrefetch = 4;
// Where a GPU decodes JPEGs, which takes 3 ms a batch, nearly all of it latency: about as many rows ahead, in
// at most as many batches. Of batches of 256, 8 / 12 / 16 ahead gave 240,000 / 277,000 / 289,000
// photographs/s from a tar archive, and 8 / 16 gave 281,000 / 367,000 from a converted set (H100).
constexpr std::uint64_t kJpegRowsAhead = 4096;
constexpr std::uint64_t kMostAhead = 32;

std::uint32_t prefetch_of_jpegs(const LoaderOptions& options) {
  const std::uint64_t rows = std::max<std::uint64_t>(options.batch_size * view_count(options), 1);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kJpegRowsAhead / rows, kPrefetch, kMostAhead));
}

// Of a GPU's loader: on some machines 8 threads stage 45 GB/s, and the link carries 55 (H200: 0.83 of it with
// 8 threads, 0.99 with 12, of which 10 have work). More leave no processor to others: two GPUs with 16 each
// on 32 cores got 0.58 of both links.
constexpr unsigned kDeviceThreads = 12;
unsigned default_threads() { return std::min(cpu_count(), 8U); }

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
  if (options.prefetch == 0) options.prefetch = kPrefetch;
  return options;
}

LoaderOptions check_loader_options(LoaderOptions options, const Dataset& dataset, const DeviceInfo& device) {
  if (options.threads == 0 && dataset.is_remote()) options.threads = kRemoteThreads;
  if (options.threads == 0 && dataset.is_unconverted()) options.threads = std::min(cpu_count(), 256U);
  if (options.threads == 0 && !device.reads_host_memory)
    options.threads = std::min(cpu_count(), kDeviceThreads);
  const bool decodes = device.decodes_jpeg && !device.reads_host_memory &&
                       (dataset.is_unconverted() || dataset.info().codec.kind == CodecSpec::Kind::jpeg);
  const bool free = leaves_memory_open(options);
  if (options.prefetch == 0 && decodes) options.prefetch = prefetch_of_jpegs(options);
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
  checked.together = choose_together(dataset, device, checked, free);
  return checked;
}

Dataset for_device(Dataset data, const DeviceInfo& device) {
  return data.is_unconverted() && !device.reads_host_memory ? FrameView::of(data) : data;
}

std::vector<std::uint64_t> samples_of_shards(const DatasetInfo& info) {
  std::vector<std::uint64_t> samples;
  for (const ShardSummary& shard : info.shards) samples.push_back(shard.samples);
  return samples;
}

namespace {

// What `of` makes of the rows and columns of each sample. It is called by several threads, and not again for
// the next sample if that has the same size.
template <class Value, class Of>
std::vector<Value> by_stored_size(const Dataset& dataset, const LoaderOptions& options, const char* what,
                                  const Of& of) {
  if (dataset.is_remote() && options.order != OrderMode::shuffle)
    throw Error(ErrorCode::unsupported, fmt::format("{} of a data set on a server needs order shuffle; make "
                                                    "a copy first for another order",
                                                    what));
  // As many at a time as pay for a thread.
  constexpr std::uint64_t kAtOnce = 4096;
  std::vector<Value> values(dataset.size());
  parallel_for(options.threads, (dataset.size() + kAtOnce - 1) / kAtOnce, [&](unsigned, std::uint64_t part) {
    SampleSize last;
    Value value{};
    const std::uint64_t end = std::min(dataset.size(), (part + 1) * kAtOnce);
    for (std::uint64_t i = part * kAtOnce; i < end; ++i) {
      const Dataset::Location at = dataset.locate(i);
      const SampleSpec spec = dataset.shard(at.shard).images().spec_of(at.sample);
      if (const SampleSize size{spec.height, spec.width}; size != last) {
        value = of(size);
        last = size;
      }
      values[i] = value;
    }
  });
  return values;
}

Order make_bucket_order(const Dataset& dataset, const LoaderOptions& options) {
  check_buckets(options.buckets);
  std::vector<std::uint64_t> global_batches;
  for (const Bucket& bucket : options.buckets) global_batches.push_back(options.global_batch_of(bucket));
  const auto assignment =
      by_stored_size<std::uint16_t>(dataset, options, "loading in buckets", [&](const SampleSize& size) {
        return static_cast<std::uint16_t>(bucket_of(size.height, size.width, options.buckets));
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
  auto sizes = by_stored_size<std::uint32_t>(dataset, options, "length_window", [&](const SampleSize& size) {
    const SampleSize made = padded_size(stored.sized(size.height, size.width), view);
    return made.height << 16U | made.width;
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
