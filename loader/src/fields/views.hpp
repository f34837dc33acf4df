// The views of each sample that a batch delivers: LoaderOptions::transform is view 0,
// further_views are the others.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/loader/loader.hpp"

namespace shard {

inline constexpr std::size_t kMaxViews = 64;

std::size_t view_count(const LoaderOptions& options) noexcept;
const TransformOptions& view_options(const LoaderOptions& options, std::size_t view) noexcept;
// LoaderOptions::transform and further_views in one list, which has at least one element.
std::vector<TransformOptions> views_of(const LoaderOptions& options);
void set_views(LoaderOptions& options, std::vector<TransformOptions> views);
// Gives views without a layout that of LoaderOptions::unnamed_layout.
void name_layouts(const DatasetInfo& info, LoaderOptions& options);
// The view of each bucket (LoaderOptions::buckets).
std::vector<TransformOptions> bucket_views(const LoaderOptions& options);
// What Batch::spec() says of a view with this transform: of patches, one as a tensor.
SampleSpec spec_in_batch(const TransformWork& work);
// True if batches have sizes of their own: buckets, padded.
bool sizes_differ(const LoaderOptions& options, std::size_t view) noexcept;
// The delivered size and the most rows of each kind of batch that a view may have: calls visit(spec, rows).
// With patches, a row is one patch.
template <class Visit>
void for_each_size(const TransformWork& work, const TransformOptions& view, const LoaderOptions& options,
                   const Visit& visit) {
  SampleSpec spec = work.delivered;
  if (view.patch != 0) return visit(spec, options.most_rows() * view.max_tokens);
  if (options.buckets.empty()) return visit(spec, options.most_rows());
  for (const Bucket& bucket : options.buckets) {
    spec.height = bucket.height;
    spec.width = bucket.width;
    visit(spec, (options.global_batch_of(bucket) + options.world_size - 1) / options.world_size);
  }
}
// The transforms without samples; with buckets of the largest. Errors: plan_transform()'s, with the view.
std::vector<TransformWork> plan_views(const DatasetInfo& info, const LoaderOptions& options);
// True if there is no transform: the delivered bytes are those that go to the device.
bool delivers_stored(const DatasetInfo& info, const LoaderOptions& options);
// What crops of a view are drawn with.
std::uint64_t crop_seed(std::uint64_t seed, std::size_t view) noexcept;

}  // namespace shard
