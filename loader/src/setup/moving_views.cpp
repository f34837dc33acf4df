#include "setup/moving_views.hpp"

#include <fmt/format.h>

#include <variant>

#include "fields/views.hpp"

namespace shard {

namespace {

bool moves(const Operation& operation) {
  return description_of(operation).moves && std::visit([](const auto& one) { return one.p > 0; }, operation);
}

std::optional<std::string> what_moves(const SampleSpec& stored, const TransformOptions& view) {
  if (view.patch != 0) return std::string("is resized to patches");
  if (view.resize != ResizeKind::none)
    return fmt::format("is resized ({})", words_of(ResizeKind{})[static_cast<std::size_t>(view.resize)]);
  if (view.crop == CropKind::random_resized) return std::string("is a random resized crop");
  if (view.crop != CropKind::none && (view.crop_height != stored.height || view.crop_width != stored.width))
    return fmt::format("is cropped to {} x {} (rows x columns)", view.crop_height, view.crop_width);
  if (view.flip > 0) return std::string("is flipped");
  for (const Operation& operation : view.operations)
    if (moves(operation)) return fmt::format("has the operation {}", name_of(operation));
  return std::nullopt;
}

}  // namespace

std::optional<std::string> what_moves(const DatasetInfo& info, const LoaderOptions& options) {
  if (info.spec.is_tensor()) return std::nullopt;
  if (!options.buckets.empty()) return std::string("view 0 is resized to its bucket");
  for (std::size_t view = 0; view < view_count(options); ++view)
    if (const auto what = what_moves(info.spec, view_options(options, view)))
      return fmt::format("view {} {}", view, *what);
  return std::nullopt;
}

}  // namespace shard
