#include "views.hpp"

#include <fmt/format.h>

#include <string>

#include "codec/stored_form.hpp"
#include "shard/error.hpp"
#include "transform/augment/operation_draws.hpp"

namespace shard {

std::size_t view_count(const LoaderOptions& options) noexcept { return 1 + options.further_views.size(); }

const TransformOptions& view_options(const LoaderOptions& options, std::size_t view) noexcept {
  return view == 0 ? options.transform : options.further_views[view - 1];
}

std::vector<TransformWork> plan_views(const DatasetInfo& info, const LoaderOptions& options) {
  if (view_count(options) > kMaxViews)
    throw Error(ErrorCode::invalid_argument, fmt::format("a batch of {} views of each sample; at most {}",
                                                         view_count(options), kMaxViews));
  std::vector<TransformWork> works;
  for (std::size_t view = 0; view < view_count(options); ++view) {
    try {
      works.push_back(plan_transform(info, view_options(options, view), static_cast<std::uint32_t>(view)));
    } catch (const Error& error) {
      const std::string message = error.what();
      if (view == 0 || message.starts_with("view ")) throw;
      throw Error(error.code(), fmt::format("view {}: {}", view, message));
    }
  }
  return works;
}

bool delivers_stored(const DatasetInfo& info, const LoaderOptions& options) {
  return options.further_views.empty() && is_identity(info, options.transform);
}

bool decodes_once(const DatasetInfo& info, const LoaderOptions& options) {
  return !options.further_views.empty() && make_stored_form(info)->decoded_by_device();
}

std::uint64_t crop_seed(std::uint64_t seed, std::size_t view) noexcept {
  return view == 0 ? seed
                   : augment::derived_seed(seed, static_cast<std::uint32_t>(view), augment::kDrawCrop, 0);
}

}  // namespace shard
