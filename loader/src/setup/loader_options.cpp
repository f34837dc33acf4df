#include "setup/loader_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/digest/checksum.hpp"
#include "base/system/cpu_count.hpp"
#include "base/system/parallel.hpp"
#include "base/text/quote.hpp"
#include "codec/stored_form.hpp"
#include "fields/delivered_columns.hpp"
#include "fields/views.hpp"
#include "setup/batch_bytes.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

// They wait for answers, not for a CPU: the first batch of a shuffle needs the heads of as many
// shards as it has samples.
constexpr unsigned kRemoteThreads = 16;

unsigned default_threads() { return std::min(cpu_count(), 8U); }

}  // namespace

void check_fields(const DatasetInfo& info, const LoaderOptions& options) {
  const auto refuse = [](const FieldSpec& field, const std::string& why) {
    throw Error(ErrorCode::unsupported, fmt::format("field {}: {}", quoted(field.name), why));
  };
  bool placed = info.spec.is_free();
  for (std::size_t view = 0; view < view_count(options); ++view)
    placed = placed || view_options(options, view).resize != ResizeKind::none ||
             view_options(options, view).padded != 0 || view_options(options, view).patch != 0;
  for (const FieldSpec& field : info.fields) {
    const auto asked = options.fields.find(field.name);
    if (asked == options.fields.end()) continue;
    if (field.spec.is_free())
      refuse(field,
             "its samples are of any size, and a loader delivers such images only as the main ones; "
             "read them one by one, or convert with a size (for example --resize 256 --crop 256)");
    if (placed && asked->second.sampling != FieldSampling::stored)
      refuse(field,
             "it cannot follow views that resize (shortest, longest, squash, letterbox, cover) or pad yet: "
             "deliver it "
             "as stored, or use a crop");
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

Order make_order(const Dataset& dataset, const LoaderOptions& options) {
  const std::vector<std::uint64_t> shards = samples_of_shards(dataset.info());
  if (options.buckets.empty()) return {shards, options};
  check_buckets(options.buckets);
  if (dataset.is_remote() && options.order != OrderMode::shuffle)
    throw Error(ErrorCode::unsupported,
                "buckets of a data set on a server need order shuffle; make a copy first for another order");
  std::vector<std::uint64_t> global_batches;
  for (const Bucket& bucket : options.buckets) global_batches.push_back(options.global_batch_of(bucket));
  // As many at a time as pay for a thread.
  constexpr std::uint64_t kAtOnce = 4096;
  std::vector<std::uint16_t> assignment(dataset.size());
  parallel_for(options.threads, (dataset.size() + kAtOnce - 1) / kAtOnce, [&](unsigned, std::uint64_t part) {
    SampleSize last;
    std::uint16_t bucket = 0;
    const std::uint64_t end = std::min(dataset.size(), (part + 1) * kAtOnce);
    for (std::uint64_t i = part * kAtOnce; i < end; ++i) {
      const Dataset::Location at = dataset.locate(i);
      const SampleSpec spec = dataset.shard(at.shard).images().spec_of(at.sample);
      if (const SampleSize size{spec.height, spec.width}; size != last) {
        bucket = static_cast<std::uint16_t>(bucket_of(size.height, size.width, options.buckets));
        last = size;
      }
      assignment[i] = bucket;
    }
  });
  std::string recipe(words_of(options.bucket_crop)[static_cast<std::size_t>(options.bucket_crop)]);
  for (const Bucket& of : options.buckets) recipe += fmt::format(" {} x {}", of.height, of.width);
  return {shards, options, assignment, global_batches, xxh3(recipe)};
}

}  // namespace shard
