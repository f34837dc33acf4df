#include "shardctl/draw/operation_names.hpp"

#include <map>

namespace shard::ctl {

std::optional<Operation> operation_named(std::string_view name) {
  constexpr Range kFactor{0.3, 1.7};
  constexpr Range kDegrees{-25, 25};
  static const std::map<std::string_view, Operation> all{
      {"brightness", ops::ColorJitter{.brightness = kFactor}},
      {"contrast", ops::ColorJitter{.contrast = kFactor}},
      {"saturation", ops::ColorJitter{.saturation = Range{0, 2}}},
      {"hue", ops::ColorJitter{.hue = Range{-0.5, 0.5}}},
      {"color-jitter", ops::ColorJitter{kFactor, kFactor, kFactor, Range{-0.2, 0.2}}},
      {"grayscale", ops::Grayscale{}},
      {"gaussian-blur", ops::GaussianBlur{9, {0.5, 3.0}}},
      {"solarize", ops::Solarize{128}},
      {"posterize", ops::Posterize{2}},
      {"equalize", ops::Equalize{}},
      {"auto-contrast", ops::AutoContrast{}},
      {"sharpness", ops::Sharpness{{0, 6}}},
      {"invert", ops::Invert{}},
      {"permute", ops::ChannelPermutation{}},
      {"affine", ops::Affine{kDegrees, {0.1, 0.1}, {0.7, 1.2}, kDegrees, {}, Interpolation::bilinear}},
      {"rotation", ops::Rotation{{-45, 45}, Interpolation::bilinear}},
      {"perspective", ops::Perspective{.distortion = 0.6, .probability = 1}},
      {"erasing", ops::Erasing{.probability = 1}},
      {"vertical-flip", ops::VerticalFlip{1}},
      {"turns", ops::QuarterTurns{}},
      {"padded-crop", ops::PaddedCrop{16}},
  };
  const auto found = all.find(name);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace shard::ctl
