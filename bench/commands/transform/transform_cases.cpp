#include "commands/transform/transform_bench.hpp"

namespace shard::bench {
namespace {

ops::ColorJitter jitter(double strength, double hue, double probability) {
  const Range around{1 - strength, 1 + strength};
  return {around, around, around, Range{-hue, hue}, true, probability};
}

std::vector<Operation> single_operations() {
  const Range half{0.5, 1.5};
  ops::ColorJitter brightness{half, {}, {}, {}};
  ops::ColorJitter contrast{{}, half, {}, {}};
  ops::ColorJitter saturation{{}, {}, half, {}};
  ops::ColorJitter hue{{}, {}, {}, Range{-0.5, 0.5}};
  ops::Affine affine{{-30, 30}, {0.1, 0.1}, {0.8, 1.2}, {-10, 10}, {}};
  ops::Affine bilinear = affine;
  bilinear.interpolation = Interpolation::bilinear;
  ops::Erasing noise{};
  noise.value.reset();
  noise.p = 1;
  return {brightness,
          contrast,
          saturation,
          hue,
          ops::Grayscale{},
          ops::GaussianBlur{},
          ops::Solarize{},
          ops::Posterize{4},
          ops::Equalize{},
          ops::AutoContrast{},
          ops::Sharpness{half},
          ops::Invert{},
          ops::Permute{},
          affine,
          bilinear,
          ops::Rotation{{-30, 30}},
          ops::Perspective{.p = 1},
          noise,
          ops::VerticalFlip{1},
          ops::Turns{},
          ops::PaddedCrop{}};
}

// The name, and of operations that are there more than once what sets them apart.
std::string name_of_single(const Operation& operation) {
  const std::string name(name_of(operation));
  if (const auto* const one = std::get_if<ops::ColorJitter>(&operation)) {
    if (one->brightness) return name + " (brightness)";
    if (one->contrast) return name + " (contrast)";
    return name + (one->saturation ? " (saturation)" : " (hue)");
  }
  if (const auto* const one = std::get_if<ops::Affine>(&operation))
    return name + (one->interpolation == Interpolation::bilinear ? " (bilinear)" : " (nearest)");
  return name;
}

}  // namespace

std::vector<TransformCase> transform_cases() {
  std::vector<TransformCase> cases;
  const auto add = [&](std::string name, std::vector<Operation> operations) {
    cases.push_back({std::move(name), std::move(operations), {}, {}, 0});
  };
  add("no operation", {});
  for (const Operation& one : single_operations()) add(name_of_single(one), {one});
  for (const Operation& policy :
       std::vector<Operation>{ops::RandAugment{}, ops::TrivialAugment{}, ops::AutoAugment{}, ops::AugMix{}})
    add(std::string(name_of(policy)), {policy});
  add("three_augment, color_jitter", {ops::ThreeAugment{}, jitter(0.3, 0, 1)});
  const std::vector<Operation> colors{jitter(0.4, 0.1, 0.8), ops::Grayscale{0.2}};
  add("color_jitter 0.8, grayscale 0.2", colors);
  std::vector<Operation> chain = colors;
  chain.emplace_back(ops::GaussianBlur{23, {0.1, 2.0}, 0.5});
  add("the same, gaussian_blur 0.5", chain);
  chain.emplace_back(ops::Solarize{128, 0.2});
  add("the same, solarize 0.2", chain);
  return cases;
}

}  // namespace shard::bench
