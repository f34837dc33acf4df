// What operations refuse, and their names.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "shard/error.hpp"
#include "shard/loader/augment.hpp"

namespace shard {

namespace {

constexpr std::array<std::string_view, std::variant_size_v<Operation>> kOperationNames{
    "color_jitter",    "grayscale",    "gaussian_blur", "solarize",     "posterize",   "equalize",
    "auto_contrast",   "sharpness",    "invert",        "permute",      "affine",      "rotation",
    "perspective",     "erasing",      "vertical_flip", "turns",        "padded_crop", "rand_augment",
    "trivial_augment", "auto_augment", "aug_mix",       "three_augment"};

constexpr std::array<std::string_view, kOpcodes> kOpcodeNames{
    "brightness",  "posterize", "solarize",      "invert",  "contrast",  "autocontrast", "equalize",
    "saturation",  "hue",       "grayscale",     "permute", "sharpness", "blur",         "affine",
    "perspective", "flip_rows", "quarter_turns", "shift",   "erase",     "erase_noise",  "keep",
    "restore",     "mix_set",   "mix_add",       "mix_end"};

class OperationCheck {
 public:
  OperationCheck(const SampleSpec& pixels, std::uint32_t view, std::size_t number, std::string_view name)
      : pixels_(pixels), where_(fmt::format("view {}, operation {} ({})", view, number, name)) {}

  void operator()(const ops::ColorJitter& jitter) const {
    channels_one_or_three();
    if (jitter.brightness) range("brightness", *jitter.brightness, 0, kMost);
    if (jitter.contrast) range("contrast", *jitter.contrast, 0, kMost);
    if (jitter.saturation) range("saturation", *jitter.saturation, 0, kMost);
    if (jitter.hue) range("hue", *jitter.hue, -0.5, 0.5);
  }
  void operator()(const ops::Grayscale&) const { channels_one_or_three(); }
  void operator()(const ops::GaussianBlur& blur) const {
    if (blur.kernel_size < 1 || blur.kernel_size > 31 || blur.kernel_size % 2 == 0)
      refuse(fmt::format("kernel_size is {}; it must be odd, 1 to 31", blur.kernel_size));
    if (pixels_.channels > 64)
      refuse(fmt::format("the samples have {} channels; it takes 1 to 64", pixels_.channels));
    smaller_than_sample("half of kernel_size", blur.kernel_size / 2);
    range("sigma", blur.sigma, std::numeric_limits<float>::min(), kMost);
  }
  void operator()(const ops::Solarize& solarize) const { number("threshold", solarize.threshold, 0, 255); }
  void operator()(const ops::Posterize& posterize) const { number("bits", posterize.bits, 0, 8); }
  void operator()(const ops::Equalize&) const { channels_up_to_four(); }
  void operator()(const ops::AutoContrast&) const { channels_one_or_three(); }
  void operator()(const ops::Sharpness& sharpness) const {
    channels_one_or_three();
    range("factor", sharpness.factor, 0, kMost);
  }
  void operator()(const ops::Invert&) const {}
  void operator()(const ops::ChannelPermutation& permutation) const {
    channels_up_to_four();
    if (!permutation.order) return;
    std::array<bool, 4> there{};
    for (std::uint32_t c = 0; c < pixels_.channels; ++c) {
      const std::uint32_t from = (*permutation.order)[c];
      if (from >= pixels_.channels || there[from])
        refuse(fmt::format("order has channel {} at {}; it must have each of 0 to {} once", from, c,
                           pixels_.channels - 1));
      there[from] = true;
    }
  }
  void operator()(const ops::Affine& affine) const {
    range("degrees", affine.degrees, -360000, 360000);
    number("translate", affine.translate[0], 0, 1);
    number("translate", affine.translate[1], 0, 1);
    range("scale", affine.scale, 1e-3, 1e3);
    range("shear_x", affine.shear_x, -89.9, 89.9);
    range("shear_y", affine.shear_y, -89.9, 89.9);
    filling(affine.interpolation, affine.fill);
  }
  void operator()(const ops::Rotation& rotation) const {
    range("degrees", rotation.degrees, -360000, 360000);
    filling(rotation.interpolation, rotation.fill);
  }
  void operator()(const ops::Perspective& perspective) const {
    number("distortion", perspective.distortion, 0, 1);
    filling(perspective.interpolation, perspective.fill);
  }
  void operator()(const ops::Erasing& erasing) const {
    range("scale", erasing.scale, 0, 1);
    range("ratio", erasing.ratio, 1e-6, 1e6);
    if (erasing.value) bytes("value", *erasing.value);
  }
  void operator()(const ops::VerticalFlip&) const {}
  void operator()(const ops::QuarterTurns& turns) const {
    if (turns.turns && *turns.turns > 3) refuse(fmt::format("turns is {}; it must be 0 to 3", *turns.turns));
    if (!(turns.turns && *turns.turns % 2 == 0) && pixels_.height != pixels_.width)
      refuse(
          fmt::format("a quarter turn of {} x {} (rows x columns) has another shape; the sample must be as "
                      "high as wide, or turns 2",
                      pixels_.height, pixels_.width));
  }
  void operator()(const ops::PaddedCrop& crop) const {
    number("padding", crop.padding, 0, 32767);
    if (crop.reflect) smaller_than_sample("padding", crop.padding);
    bytes("fill", crop.fill);
  }
  void operator()(const ops::RandAugment& policy) const {
    channels_one_or_three();
    number("count", policy.count, 0, 16);
    number("bins", policy.bins, 2, 1000);
    number("magnitude", policy.magnitude, 0, policy.bins - 1);
    filling(policy.interpolation, policy.fill);
  }
  void operator()(const ops::TrivialAugmentWide& policy) const {
    channels_one_or_three();
    number("bins", policy.bins, 2, 1000);
    filling(policy.interpolation, policy.fill);
  }
  void operator()(const ops::AutoAugment& policy) const {
    channels_one_or_three();
    number("policy", static_cast<double>(policy.policy), 0, 2);
    filling(policy.interpolation, policy.fill);
  }
  void operator()(const ops::AugMix& policy) const {
    channels_one_or_three();
    number("severity", policy.severity, 1, 10);
    number("width", policy.width, 1, 4);
    number("depth", policy.depth, 0, 4);
    number("alpha", policy.alpha, 1e-3, 1e6);
    filling(policy.interpolation, policy.fill);
  }
  void operator()(const ops::ThreeAugment&) const {
    channels_one_or_three();
    smaller_than_sample("half of the blur's kernel_size", 6);
  }

  void probability(double p) const { number("probability", p, 0, 1); }

 private:
  // Beyond it, nothing but 0 and 255 is left.
  static constexpr double kMost = 1e6;

  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorCode::invalid_argument, where_ + ": " + message);
  }
  // False for NaN.
  void number(std::string_view name, double value, double low, double high) const {
    if (!(value >= low && value <= high))
      refuse(fmt::format("{} is {}; it must be {} to {}", name, value, low, high));
  }
  void range(std::string_view name, const Range& given, double low, double high) const {
    if (!(given.low >= low && given.low <= given.high && given.high <= high))
      refuse(fmt::format("{} is [{}, {}]; it must be {} <= low <= high <= {}", name, given.low, given.high,
                         low, high));
  }
  void bytes(std::string_view name, const std::array<float, 4>& values) const {
    for (const float value : values) number(name, value, 0, 255);
  }
  void filling(Interpolation interpolation, const Fill& fill) const {
    if (interpolation > Interpolation::bilinear)
      refuse(fmt::format("interpolation is {}; it must be nearest (0) or bilinear (1)",
                         static_cast<int>(interpolation)));
    if (fill) bytes("fill", *fill);
  }
  void channels_one_or_three() const {
    if (pixels_.channels != 1 && pixels_.channels != 3)
      refuse(fmt::format("the samples have {} channels; it is defined for 1 or 3", pixels_.channels));
  }
  void channels_up_to_four() const {
    if (pixels_.channels > 4)
      refuse(fmt::format("the samples have {} channels; it takes 1 to 4", pixels_.channels));
  }
  void smaller_than_sample(std::string_view name, std::uint32_t value) const {
    if (value >= std::min(pixels_.height, pixels_.width))
      refuse(fmt::format("{} is {}; it must be less than rows and columns, which are {} x {}", name, value,
                         pixels_.height, pixels_.width));
  }

  const SampleSpec& pixels_;
  std::string where_;
};

}  // namespace

std::string_view name_of(const Operation& operation) noexcept { return kOperationNames[operation.index()]; }

std::string_view to_string(Opcode opcode) noexcept { return kOpcodeNames[static_cast<std::size_t>(opcode)]; }

void check_operations(const SampleSpec& pixels, const std::vector<Operation>& operations,
                      std::uint32_t view) {
  if (!operations.empty() && pixels.dtype != DType::u8)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("view {}, operation 0 ({}): operations are defined for samples stored as u8 or "
                            "with codec packed, not as {} "
                            "values: convert the images with dtype u8 or codec packed",
                            view, name_of(operations[0]), to_string(pixels.dtype)));
  if (!operations.empty() && pixels.elements() >= std::uint64_t{1} << 31U)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("view {}: operations take samples of fewer than 2^31 values, not of {}", view,
                            pixels.elements()));
  if (operations.size() > 32)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("view {}: {} operations; at most 32", view, operations.size()));
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const OperationCheck check(pixels, view, i, name_of(operations[i]));
    std::visit([&](const auto& operation) { check.probability(operation.probability); }, operations[i]);
    std::visit(check, operations[i]);
  }
}

}  // namespace shard
