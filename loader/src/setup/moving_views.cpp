#include "setup/moving_views.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <variant>

#include "fields/views.hpp"

namespace shard {

namespace {

template <class T, class... Others>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Others> || ...);

// Operations on colours, blur and erasing leave every pixel where it is.
bool moves(const Operation& operation) {
  return std::visit(
      [](const auto& one) {
        using T = std::decay_t<decltype(one)>;
        return one.probability > 0 &&
               kIsOneOf<T, ops::Affine, ops::Rotation, ops::Perspective, ops::VerticalFlip, ops::QuarterTurns,
                        ops::PaddedCrop, ops::RandAugment, ops::TrivialAugmentWide, ops::AutoAugment,
                        ops::AugMix>;
      },
      operation);
}

std::optional<std::string> what_moves(const SampleSpec& stored, const TransformOptions& view) {
  if (view.crop == CropKind::random_resized) return std::string("is a random resized crop");
  if (view.crop != CropKind::none && (view.crop_height != stored.height || view.crop_width != stored.width))
    return fmt::format("is cropped to {} x {} (rows x columns)", view.crop_height, view.crop_width);
  if (view.flip_probability > 0) return std::string("is flipped");
  for (const Operation& operation : view.operations)
    if (moves(operation)) return fmt::format("has the operation {}", name_of(operation));
  return std::nullopt;
}

}  // namespace

std::optional<std::string> what_moves(const DatasetInfo& info, const LoaderOptions& options) {
  if (info.spec.is_tensor()) return std::nullopt;
  for (std::size_t view = 0; view < view_count(options); ++view)
    if (const auto what = what_moves(info.spec, view_options(options, view)))
      return fmt::format("view {} {}", view, *what);
  return std::nullopt;
}

}  // namespace shard
