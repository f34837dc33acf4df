#include "transform/augment/policies.hpp"

#include <cmath>
#include <numbers>
#include <optional>

#include "transform/augment/geometry.hpp"

namespace shard::augment {

namespace {

// torchvision's names, in the order of its tables.
enum class Act : std::uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize,
  invert,
};

// How strong each act is at its last magnitude.
struct Strength {
  double shear;
  double translate_x;  // pixels
  double translate_y;
  double degrees;
  double enhance;
  double bits;  // posterize: at magnitude 0
  double bits_less;
};
Strength usual_strength(const SampleSpec& pixels) noexcept {
  return {0.3, 150.0 / 331.0 * pixels.width, 150.0 / 331.0 * pixels.height, 30, 0.9, 8, 4};
}

// torch.linspace(first, last, bins)[at], in float32: product and sum are rounded once,
// as by its kernels on processors with fused multiply-add.
double spaced(double first, double last, std::uint32_t bins, std::uint32_t at) noexcept {
  if (bins < 2) return static_cast<float>(first);
  const auto begin = static_cast<float>(first);
  const auto end = static_cast<float>(last);
  const float step = (end - begin) / static_cast<float>(bins - 1);
  return at < bins / 2 ? std::fma(step, static_cast<float>(at), begin)
                       : std::fma(-step, static_cast<float>(bins - 1 - at), end);
}

struct Style {
  const SampleSpec& pixels;
  Interpolation interpolation;
  const Fill& fill;
};

void append_affine(const Style& style, const AffineParameters& parameters,
                   std::vector<Instruction>& program) {
  program.push_back(
      affine_instruction(style.pixels, inverse_affine_matrix(parameters), style.interpolation, style.fill));
}

// A factor of an image, from a magnitude: 1 + magnitude. As in torchvision, it is a double until the image is
// multiplied by it: the factor of the other image is 1 - factor of the double, not of the float32.
Instruction blended(Opcode opcode, double magnitude) {
  const double factor = 1.0 + magnitude;
  return {opcode, {}, {static_cast<float>(factor), static_cast<float>(1.0 - factor)}};
}

void append_shear(const Style& style, bool along_x, double magnitude, std::vector<Instruction>& program) {
  AffineParameters parameters;
  const double degrees = std::atan(magnitude) * (180 / std::numbers::pi);
  parameters.shear = along_x ? std::array{degrees, 0.0} : std::array{0.0, degrees};
  parameters.center = {-0.5 * style.pixels.width, -0.5 * style.pixels.height};
  append_affine(style, parameters, program);
}

bool is_signed(Act act) noexcept { return act >= Act::shear_x && act <= Act::sharpness; }

double magnitude_of(Act act, const Strength& strength, std::uint32_t bins, std::uint32_t at) noexcept {
  switch (act) {
    case Act::shear_x:
    case Act::shear_y:
      return spaced(0, strength.shear, bins, at);
    case Act::translate_x:
      return spaced(0, strength.translate_x, bins, at);
    case Act::translate_y:
      return spaced(0, strength.translate_y, bins, at);
    case Act::rotate:
      return spaced(0, strength.degrees, bins, at);
    case Act::brightness:
    case Act::color:
    case Act::contrast:
    case Act::sharpness:
      return spaced(0, strength.enhance, bins, at);
    case Act::posterize:
      return static_cast<double>(nearbyintf(
          static_cast<float>(strength.bits) -
          static_cast<float>(at) / static_cast<float>(static_cast<double>(bins - 1) / strength.bits_less)));
    case Act::solarize:
      return spaced(1, 0, bins, at);
    default:
      return 0;
  }
}

void append(const Style& style, Act act, double magnitude, std::vector<Instruction>& program) {
  const auto none = [&] { return magnitude == 0; };
  AffineParameters moved;
  switch (act) {
    case Act::identity:
      return;
    case Act::shear_x:
    case Act::shear_y:
      if (!none()) append_shear(style, act == Act::shear_x, magnitude, program);
      return;
    case Act::translate_x:
    case Act::translate_y:
      moved.translate[act == Act::translate_x ? 0 : 1] = std::trunc(magnitude);
      if (std::trunc(magnitude) != 0) append_affine(style, moved, program);
      return;
    case Act::rotate:
      return append_rotation(style.pixels, magnitude, style.interpolation, style.fill, program);
    case Act::brightness:
      if (!none()) program.push_back({Opcode::brightness, {}, {static_cast<float>(1.0 + magnitude)}});
      return;
    case Act::color:
      if (!none() && style.pixels.channels == 3) program.push_back(blended(Opcode::saturation, magnitude));
      return;
    case Act::contrast:
      if (!none()) program.push_back(blended(Opcode::contrast, magnitude));
      return;
    case Act::sharpness:
      if (!none())
        program.push_back({Opcode::sharpness, {}, {blended(Opcode::sharpness, magnitude).real[1]}});
      return;
    case Act::posterize:
      if (const auto bits = static_cast<std::uint32_t>(magnitude); bits < 8)
        program.push_back({Opcode::posterize, {static_cast<std::int32_t>(((1U << bits) - 1) << (8 - bits))}});
      return;
    case Act::solarize:
      program.push_back({Opcode::solarize, {}, {static_cast<float>(255.0 * magnitude)}});
      return;
    case Act::auto_contrast:
      program.push_back({Opcode::autocontrast});
      return;
    case Act::equalize:
      program.push_back({Opcode::equalize});
      return;
    case Act::invert:
      program.push_back({Opcode::invert});
      return;
  }
}

// One act of magnitude `at`, or of a random one below `bins_drawn`.
void append_drawn(const Style& style, Act act, const Strength& strength, std::uint32_t bins, std::uint32_t at,
                  OperationDraws& draws, std::vector<Instruction>& program) {
  double magnitude = magnitude_of(act, strength, bins, at);
  if (is_signed(act) && draws.uniform() < 0.5) magnitude = -magnitude;
  append(style, act, magnitude, program);
}

// Two acts, each with its probability in tenths and its magnitude of 10.
struct Step {
  Act act;
  std::uint8_t tenths;
  std::uint8_t magnitude;
};
using Pair = std::array<Step, 2>;
using Pairs = std::array<Pair, 25>;

using enum Act;
// Tables 7, 8 and 9 of the paper's appendix, as torchvision has them.
constexpr Pairs kImagenet{{
    {{{posterize, 4, 8}, {rotate, 6, 9}}},  {{{solarize, 6, 5}, {auto_contrast, 6, 0}}},
    {{{equalize, 8, 0}, {equalize, 6, 0}}}, {{{posterize, 6, 7}, {posterize, 6, 6}}},
    {{{equalize, 4, 0}, {solarize, 2, 4}}}, {{{equalize, 4, 0}, {rotate, 8, 8}}},
    {{{solarize, 6, 3}, {equalize, 6, 0}}}, {{{posterize, 8, 5}, {equalize, 10, 0}}},
    {{{rotate, 2, 3}, {solarize, 6, 8}}},   {{{equalize, 6, 0}, {posterize, 4, 6}}},
    {{{rotate, 8, 8}, {color, 4, 0}}},      {{{rotate, 4, 9}, {equalize, 6, 0}}},
    {{{equalize, 0, 0}, {equalize, 8, 0}}}, {{{invert, 6, 0}, {equalize, 10, 0}}},
    {{{color, 6, 4}, {contrast, 10, 8}}},   {{{rotate, 8, 8}, {color, 10, 2}}},
    {{{color, 8, 8}, {solarize, 8, 7}}},    {{{sharpness, 4, 7}, {invert, 6, 0}}},
    {{{shear_x, 6, 5}, {equalize, 10, 0}}}, {{{color, 4, 0}, {equalize, 6, 0}}},
    {{{equalize, 4, 0}, {solarize, 2, 4}}}, {{{solarize, 6, 5}, {auto_contrast, 6, 0}}},
    {{{invert, 6, 0}, {equalize, 10, 0}}},  {{{color, 6, 4}, {contrast, 10, 8}}},
    {{{equalize, 8, 0}, {equalize, 6, 0}}},
}};
constexpr Pairs kCifar10{{
    {{{invert, 1, 0}, {contrast, 2, 6}}},           {{{rotate, 7, 2}, {translate_x, 3, 9}}},
    {{{sharpness, 8, 1}, {sharpness, 9, 3}}},       {{{shear_y, 5, 8}, {translate_y, 7, 9}}},
    {{{auto_contrast, 5, 0}, {equalize, 9, 0}}},    {{{shear_y, 2, 7}, {posterize, 3, 7}}},
    {{{color, 4, 3}, {brightness, 6, 7}}},          {{{sharpness, 3, 9}, {brightness, 7, 9}}},
    {{{equalize, 6, 0}, {equalize, 5, 0}}},         {{{contrast, 6, 7}, {sharpness, 6, 5}}},
    {{{color, 7, 7}, {translate_x, 5, 8}}},         {{{equalize, 3, 0}, {auto_contrast, 4, 0}}},
    {{{translate_y, 4, 3}, {sharpness, 2, 6}}},     {{{brightness, 9, 6}, {color, 2, 8}}},
    {{{solarize, 5, 2}, {invert, 0, 0}}},           {{{equalize, 2, 0}, {auto_contrast, 6, 0}}},
    {{{equalize, 2, 0}, {equalize, 6, 0}}},         {{{color, 9, 9}, {equalize, 6, 0}}},
    {{{auto_contrast, 8, 0}, {solarize, 2, 8}}},    {{{brightness, 1, 3}, {color, 7, 0}}},
    {{{solarize, 4, 5}, {auto_contrast, 9, 0}}},    {{{translate_y, 9, 9}, {translate_y, 7, 9}}},
    {{{auto_contrast, 9, 0}, {solarize, 8, 3}}},    {{{equalize, 8, 0}, {invert, 1, 0}}},
    {{{translate_y, 7, 9}, {auto_contrast, 9, 0}}},
}};
constexpr Pairs kSvhn{{
    {{{shear_x, 9, 4}, {invert, 2, 0}}},       {{{shear_y, 9, 8}, {invert, 7, 0}}},
    {{{equalize, 6, 0}, {solarize, 6, 6}}},    {{{invert, 9, 0}, {equalize, 6, 0}}},
    {{{equalize, 6, 0}, {rotate, 9, 3}}},      {{{shear_x, 9, 4}, {auto_contrast, 8, 0}}},
    {{{shear_y, 9, 8}, {invert, 4, 0}}},       {{{shear_y, 9, 5}, {solarize, 2, 6}}},
    {{{invert, 9, 0}, {auto_contrast, 8, 0}}}, {{{equalize, 6, 0}, {rotate, 9, 3}}},
    {{{shear_x, 9, 4}, {solarize, 3, 3}}},     {{{shear_y, 8, 8}, {invert, 7, 0}}},
    {{{equalize, 9, 0}, {translate_y, 6, 6}}}, {{{invert, 9, 0}, {equalize, 6, 0}}},
    {{{contrast, 3, 3}, {rotate, 8, 4}}},      {{{invert, 8, 0}, {translate_y, 0, 2}}},
    {{{shear_y, 7, 6}, {solarize, 4, 8}}},     {{{invert, 6, 0}, {rotate, 8, 4}}},
    {{{shear_y, 3, 7}, {translate_x, 9, 3}}},  {{{shear_x, 1, 6}, {invert, 6, 0}}},
    {{{solarize, 7, 2}, {translate_y, 6, 7}}}, {{{shear_y, 8, 4}, {invert, 8, 0}}},
    {{{shear_x, 7, 9}, {translate_y, 8, 3}}},  {{{shear_y, 8, 5}, {auto_contrast, 7, 0}}},
    {{{shear_x, 7, 2}, {invert, 1, 0}}},
}};

// AugMix's operations.
constexpr std::array kPartial{shear_x,   shear_y,  translate_x,   translate_y, rotate,
                              posterize, solarize, auto_contrast, equalize,    brightness,
                              color,     contrast, sharpness};
constexpr std::uint32_t kPartialCount = 9;

}  // namespace

void draw(const ops::RandAugment& policy, const SampleSpec& pixels, OperationDraws& draws,
          std::vector<Instruction>& program) {
  const Style style{pixels, policy.interpolation, policy.fill};
  for (std::uint32_t i = 0; i < policy.count; ++i) {
    const auto act = static_cast<Act>(draws.below(14));
    append_drawn(style, act, usual_strength(pixels), policy.bins, policy.magnitude, draws, program);
  }
}

void draw(const ops::TrivialAugment& policy, const SampleSpec& pixels, OperationDraws& draws,
          std::vector<Instruction>& program) {
  constexpr Strength kWide{0.99, 32, 32, 135, 0.99, 8, 6};
  const auto act = static_cast<Act>(draws.below(14));
  const std::uint32_t at = draws.below(policy.bins);
  append_drawn({pixels, policy.interpolation, policy.fill}, act, kWide, policy.bins, at, draws, program);
}

void draw(const ops::AutoAugment& policy, const SampleSpec& pixels, OperationDraws& draws,
          std::vector<Instruction>& program) {
  const Pairs& pairs = policy.policy == ops::AutoAugmentPolicy::imagenet  ? kImagenet
                       : policy.policy == ops::AutoAugmentPolicy::cifar10 ? kCifar10
                                                                          : kSvhn;
  for (const Step& step : pairs[draws.below(25)])
    if (draws.below(10) < step.tenths)
      append_drawn({pixels, policy.interpolation, policy.fill}, step.act, usual_strength(pixels), 10,
                   step.magnitude, draws, program);
}

void draw(const ops::AugMix& policy, const SampleSpec& pixels, OperationDraws& draws,
          std::vector<Instruction>& program) {
  const Strength strength{0.3, pixels.width / 3.0, pixels.height / 3.0, 30, 0.9, 4, 4};
  // Dirichlet distributions: shares of gamma variables.
  const double original = draws.beta(policy.alpha, policy.alpha);
  std::array<OperationDraws::Gamma, 4> weights{};
  for (std::uint32_t i = 0; i < policy.width; ++i) weights[i] = draws.gamma(policy.alpha);
  const std::array<double, 4> shares = OperationDraws::shares(weights, policy.width);
  program.push_back({Opcode::keep});
  program.push_back({Opcode::mix_set, {}, {static_cast<float>(original)}});
  for (std::uint32_t i = 0; i < policy.width; ++i) {
    if (i > 0) program.push_back({Opcode::restore});
    const std::uint32_t depth = policy.depth != 0 ? policy.depth : 1 + draws.below(3);
    for (std::uint32_t k = 0; k < depth; ++k) {
      const Act act = kPartial[draws.below(policy.all_operations ? kPartial.size() : kPartialCount)];
      const std::uint32_t at = draws.below(policy.severity);
      append_drawn({pixels, policy.interpolation, policy.fill}, act, strength, 10, at, draws, program);
    }
    program.push_back({Opcode::mix_add, {}, {static_cast<float>(shares[i] * (1 - original))}});
  }
  program.push_back({Opcode::mix_end});
}

}  // namespace shard::augment
