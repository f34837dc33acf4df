// Random operations, and pixels to apply them to.
#pragma once

#include <cstdint>
#include <vector>

#include "random_work.hpp"
#include "shard/loader/augment.hpp"

namespace shard::testing {

inline constexpr std::uint32_t kOperationKinds = std::variant_size_v<Operation>;

// One of `kind`, with random parameters, that samples of this shape can have; they are 16 x 16 or larger.
// Kinds that need 1 or 3 channels, or a square, become others where they are not possible.
inline Operation random_operation(Random& random, const SampleSpec& pixels, std::uint32_t kind) {
  const auto real = [&](double low, double high) {
    return low + (high - low) * random.between(0, 1000) / 1000.0;
  };
  const auto range = [&](double low, double high) {
    const double a = real(low, high);
    return Range{a, real(a, high)};
  };
  const Interpolation interpolation = random.coin() ? Interpolation::nearest : Interpolation::bilinear;
  const Fill fill = random.coin() ? Fill{} : Fill{{7, 100.5F, 255, 0}};
  const bool color = pixels.channels == 1 || pixels.channels == 3;
  switch (color ? kind : 3 + kind % 15) {
    case 0:
      return ops::ColorJitter{range(0, 2), range(0, 2), range(0, 2), range(-0.5, 0.5)};
    case 1:
      return ops::Grayscale{};
    case 2:
      return ops::GaussianBlur{2 * random.between(0, 15) + 1, range(0.1, 4)};
    case 3:
      return ops::Solarize{real(0, 255)};
    case 4:
      return ops::Posterize{random.between(0, 8)};
    case 5:
      if (pixels.channels <= 4) return ops::Equalize{};
      break;
    case 6:
      if (color) return ops::AutoContrast{};
      break;
    case 7:
      if (color) return ops::Sharpness{range(0, 3)};
      break;
    case 8:
      return ops::Invert{};
    case 9:
      if (pixels.channels <= 4) return ops::ChannelPermutation{};
      break;
    case 10:
      return ops::Affine{range(-180, 180), {0.3, 0.3},    range(0.5, 2), range(-30, 30),
                         range(-30, 30),   interpolation, fill};
    case 11:
      return ops::Rotation{range(-400, 400), interpolation, fill};
    case 12:
      return ops::Perspective{real(0, 1), interpolation, fill, 1};
    case 13:
      return ops::Erasing{{0.02, 0.9}, {0.3, 3.3}, random.coin() ? Fill{} : Fill{{1, 200, 30, 4}}, 1};
    case 14:
      return ops::VerticalFlip{1};
    case 15:
      return pixels.height == pixels.width ? ops::QuarterTurns{} : ops::QuarterTurns{2};
    case 16:
      return ops::PaddedCrop{random.between(0, 15), random.coin(), {9, 8, 7, 6}};
    case 17:
      if (color)
        return ops::RandAugment{random.between(1, 3), random.between(0, 30), 31, interpolation, fill};
      break;
    case 18:
      return ops::TrivialAugmentWide{31, interpolation, fill};
    case 19:
      return ops::AutoAugment{static_cast<ops::AutoAugmentPolicy>(random.between(0, 2)), interpolation, fill};
    case 20:
      return ops::AugMix{
          random.between(1, 10), random.between(1, 4), random.between(0, 2), 1, true, interpolation, fill};
    case 21:
      return ops::ThreeAugment{};
    default:
      break;
  }
  return ops::Invert{};
}

inline std::vector<Operation> random_operations(Random& random, const SampleSpec& pixels,
                                                std::uint32_t most) {
  std::vector<Operation> operations;
  const std::uint32_t count = random.between(1, most);
  for (std::uint32_t i = 0; i < count; ++i)
    operations.push_back(random_operation(random, pixels, random.between(0, kOperationKinds - 1)));
  return operations;
}

}  // namespace shard::testing
