// The operations of augmentation. Each is a struct whose parameters are declared once: in C++ as members with
// defaults, and in members() with their names, bounds and what else is to be known. From this are made
//
//   check_operations()          what is refused, with name, value and bounds
//   a loader's state            the text of its views (fields/view_text)
//   shardloader.ops             Python's functions, their signatures and the stub for type checkers
//   shardctl show --augment     an operation by name, with the values of `shown`
//   shardbench transform        one of each; random operations of tests
//
// A new operation is a struct here (at the end of Operation), its draw() in
// loader/src/transform/augment/draw.cpp and, where no instruction does it yet, one in Opcode with its
// kernels for host and CUDA. A test (tests/structure/operations.py) says what it lacks: a row in
// docs/augment.md, a test.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "shard/schema.hpp"

namespace shard {

enum class Interpolation : std::uint8_t { nearest, bilinear };
constexpr std::array<std::string_view, 2> words_of(Interpolation) { return {"nearest", "bilinear"}; }
// What pixels outside of the sample are, per channel, 0 to 255. Channels after the fourth have the first
// value. None: 0, and with bilinear, pixels at the border are not mixed with it (torchvision's fill=None).
using Fill = std::optional<std::array<float, 4>>;

namespace ops {

enum class AutoAugmentPolicy : std::uint8_t { imagenet, cifar10, svhn };
constexpr std::array<std::string_view, 3> words_of(AutoAugmentPolicy) {
  return {"imagenet", "cifar10", "svhn"};
}

// The samples that an operation takes, by their channels.
enum class Channels : std::uint8_t { any, one_or_three, up_to_4, up_to_64 };

// One thing that is known of an operation.
struct Description {
  std::string_view name;      // at every door: "color_jitter"
  std::string_view sentence;  // for help()
  Channels channels = Channels::any;
  bool moves = false;      // pixels go to other places, and targets with them
  bool is_policy = false;  // draws other operations
};

// Beyond it, nothing but 0 and 255 is left of a value.
inline constexpr double kLargest = 1e6;
inline constexpr Limits kFactor{.low = 0, .high = kLargest, .centre = 1, .shown = Range{0.3, 1.7}};
inline constexpr Limits kDegrees{
    .low = -360000, .high = 360000, .centre = 0, .shown = Range{-45, 45}, .required = true};
inline constexpr Limits kSwitch{.by_name = true};
inline constexpr Limits kFill{.low = 0, .high = 255, .by_name = true};
inline constexpr Limits kInterpolation{.shown = Range{1, 1}, .by_name = true};
inline constexpr Limits kBins{.low = 2, .high = 1000, .by_name = true};
inline constexpr Limits kProbability{.low = 0, .high = 1, .shown = Range{1, 1}, .by_name = true};

// In all of them, `p` is the probability of being applied.

// torchvision's ColorJitter: factors of brightness, contrast and saturation, and the shift of the hue. None:
// this part is left out. The parts come in a random order, or in that of their names here.
struct ColorJitter {
  std::optional<Range> brightness{};
  std::optional<Range> contrast{};
  std::optional<Range> saturation{};
  std::optional<Range> hue{};
  bool random_order = true;
  double p = 1;

  static constexpr Description kDescription{
      "color_jitter",
      "torchvision's ColorJitter. A number v: factors from 1 - v to 1 + v, and hues from -v to v.",
      Channels::one_or_three};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("brightness", of.brightness, kFactor);
    visit("contrast", of.contrast, kFactor);
    visit("saturation", of.saturation, kFactor);
    visit("hue", of.hue, Limits{.low = -0.5, .high = 0.5, .centre = 0, .shown = Range{-0.2, 0.2}});
    visit("random_order", of.random_order, kSwitch);
  }
};

struct Grayscale {
  double p = 1;

  static constexpr Description kDescription{"grayscale", "All channels become the gray value.",
                                            Channels::one_or_three};
};

// A kernel of kernel_size x kernel_size; its half is less than the rows and columns.
struct GaussianBlur {
  std::uint32_t kernel_size = 23;
  Range sigma{0.1, 2.0};
  double p = 1;

  static constexpr Description kDescription{
      "gaussian_blur", "kernel_size: odd, up to 31. sigma: a number, or bounds.", Channels::up_to_64};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("kernel_size", of.kernel_size, Limits{.low = 1, .high = 31, .odd = true, .shown = Range{9, 9}});
    visit(
        "sigma", of.sigma,
        Limits{.low = double{std::numeric_limits<float>::min()}, .high = kLargest, .shown = Range{0.5, 3.0}});
  }
};

struct Solarize {
  double threshold = 128;
  double p = 1;

  static constexpr Description kDescription{"solarize", "Values v of at least `threshold` become 255 - v."};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("threshold", of.threshold, Limits{.low = 0, .high = 255});
  }
};

struct Posterize {
  std::uint32_t bits = 8;
  double p = 1;

  static constexpr Description kDescription{"posterize", "Keeps the upper bits of each value."};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("bits", of.bits, Limits{.low = 0, .high = 8, .shown = Range{2, 2}, .required = true});
  }
};

struct Equalize {
  double p = 1;

  static constexpr Description kDescription{"equalize", "Makes the histogram of each channel flat.",
                                            Channels::up_to_4};
};

struct AutoContrast {
  double p = 1;

  static constexpr Description kDescription{"auto_contrast", "Stretches each channel to 0 to 255.",
                                            Channels::one_or_three};
};

struct Sharpness {
  Range factor{2, 2};
  double p = 1;

  static constexpr Description kDescription{"sharpness", "factor: 0 blurs, 1 changes nothing.",
                                            Channels::one_or_three};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("factor", of.factor, Limits{.low = 0, .high = kLargest, .shown = Range{0, 6}});
  }
};

struct Invert {
  double p = 1;

  static constexpr Description kDescription{"invert", "Values v become 255 - v."};
};

struct Permute {
  std::optional<std::array<std::uint32_t, 4>> order{};
  double p = 1;

  static constexpr Description kDescription{
      "permute", "Output channel c is input channel order[c]. None: a random order.", Channels::up_to_4};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("order", of.order, Limits{});
  }
};

// torchvision's RandomAffine about the centre. Degrees; translations as shares of columns and rows, drawn in
// whole pixels; shears in degrees.
struct Affine {
  Range degrees{};
  std::array<double, 2> translate{};
  Range scale{1, 1};
  Range shear_x{};
  Range shear_y{};
  Interpolation interpolation = Interpolation::nearest;
  Fill fill = std::array<float, 4>{};
  double p = 1;

  static constexpr Description kDescription{
      "affine", "torchvision's RandomAffine. A number v of degrees: from -v to v.", Channels::any, true};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("degrees", of.degrees,
          Limits{.low = kDegrees.low, .high = kDegrees.high, .centre = 0, .shown = Range{-25, 25}});
    visit("translate", of.translate, Limits{.low = 0, .high = 1, .shown = Range{0.1, 0.1}});
    visit("scale", of.scale, Limits{.low = 1e-3, .high = 1e3, .shown = Range{0.7, 1.2}});
    visit("shear_x", of.shear_x, Limits{.low = -89.9, .high = 89.9, .centre = 0, .shown = Range{-25, 25}});
    visit("shear_y", of.shear_y, Limits{.low = -89.9, .high = 89.9, .centre = 0});
    visit("interpolation", of.interpolation, kInterpolation);
    visit("fill", of.fill, kFill);
  }
};

// torchvision's RandomRotation, without expansion.
struct Rotation {
  Range degrees{};
  Interpolation interpolation = Interpolation::nearest;
  Fill fill = std::array<float, 4>{};
  double p = 1;

  static constexpr Description kDescription{
      "rotation", "Counter-clockwise, about the centre. A number v: from -v to v.", Channels::any, true};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("degrees", of.degrees, kDegrees);
    visit("interpolation", of.interpolation, kInterpolation);
    visit("fill", of.fill, kFill);
  }
};

struct Perspective {
  double distortion = 0.5;
  Interpolation interpolation = Interpolation::bilinear;
  Fill fill = std::array<float, 4>{};
  double p = 0.5;

  static constexpr Description kDescription{"perspective", "torchvision's RandomPerspective.", Channels::any,
                                            true};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("distortion", of.distortion, Limits{.low = 0, .high = 1, .shown = Range{0.6, 0.6}});
    visit("interpolation", of.interpolation, kInterpolation);
    visit("fill", of.fill, kFill);
  }
};

// torchvision's RandomErasing of a rectangle: `scale` is its share of the area, `ratio` height / width.
struct Erasing {
  Range scale{0.02, 0.33};
  Range ratio{0.3, 3.3};
  Fill value = std::array<float, 4>{};  // none: each byte is uniform in 0 to 255
  double p = 0.5;

  static constexpr Description kDescription{
      "erasing", "A rectangle gets `value` (of bytes, 0 to 255), or with \"random\" uniform bytes."};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("scale", of.scale, Limits{.low = 0, .high = 1});
    visit("ratio", of.ratio, Limits{.low = 1e-6, .high = 1e6});
    visit("value", of.value, Limits{.low = 0, .high = 255, .none = "random"});
  }
};

struct VerticalFlip {
  double p = 0.5;

  static constexpr Description kDescription{"vertical_flip", "The first row becomes the last.", Channels::any,
                                            true};
};

// 1 and 3, and what is drawn: samples that are as high as wide.
struct Turns {
  std::optional<std::uint32_t> turns{};
  double p = 1;

  static constexpr Description kDescription{
      "turns", "Quarter turns counter-clockwise: 0 to 3. None: each equally often.", Channels::any, true};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("turns", of.turns, Limits{.low = 0, .high = 3});
  }
};

// torchvision's RandomCrop of the view's own size with padding on all sides: the sample moves by at most
// `padding` rows and columns. reflect: padding is less than the rows and columns.
struct PaddedCrop {
  std::uint32_t padding = 4;
  bool reflect = false;
  std::array<float, 4> fill{};
  double p = 1;

  static constexpr Description kDescription{
      "padded_crop", "torchvision's RandomCrop of the sample's own size with padding.", Channels::any, true};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("padding", of.padding, Limits{.low = 0, .high = 32767, .shown = Range{16, 16}});
    visit("reflect", of.reflect, kSwitch);
    visit("fill", of.fill, kFill);
  }
};

// Cubuk et al., "RandAugment", 2019: `count` operations of equal strength: magnitude of `bins` steps.
struct RandAugment {
  std::uint32_t count = 2;
  std::uint32_t magnitude = 9;
  std::uint32_t bins = 31;
  Interpolation interpolation = Interpolation::nearest;
  Fill fill{};
  double p = 1;

  static constexpr Description kDescription{"rand_augment", "torchvision's RandAugment.",
                                            Channels::one_or_three, true, true};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("count", of.count, Limits{.low = 0, .high = 16});
    visit("magnitude", of.magnitude, Limits{.low = 0, .high = 999});  // and less than bins
    visit("bins", of.bins, kBins);
    visit("interpolation", of.interpolation, kInterpolation);
    visit("fill", of.fill, kFill);
  }
};

// Mueller and Hutter, "TrivialAugment", 2021: one operation of any strength.
struct TrivialAugment {
  std::uint32_t bins = 31;
  Interpolation interpolation = Interpolation::nearest;
  Fill fill{};
  double p = 1;

  static constexpr Description kDescription{"trivial_augment", "torchvision's TrivialAugmentWide.",
                                            Channels::one_or_three, true, true};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("bins", of.bins, kBins);
    visit("interpolation", of.interpolation, kInterpolation);
    visit("fill", of.fill, kFill);
  }
};

// Cubuk et al., "AutoAugment", 2018: one of 25 pairs of operations.
struct AutoAugment {
  AutoAugmentPolicy policy = AutoAugmentPolicy::imagenet;
  Interpolation interpolation = Interpolation::nearest;
  Fill fill{};
  double p = 1;

  static constexpr Description kDescription{
      "auto_augment", "torchvision's AutoAugment: \"imagenet\", \"cifar10\" or \"svhn\".",
      Channels::one_or_three, true, true};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("policy", of.policy, Limits{});
    visit("interpolation", of.interpolation, kInterpolation);
    visit("fill", of.fill, kFill);
  }
};

// Hendrycks et al., "AugMix", 2019: the sample mixed with `width` chains of operations.
struct AugMix {
  std::uint32_t severity = 3;
  std::uint32_t width = 3;
  std::uint32_t depth = 0;
  double alpha = 1;
  bool all_operations = true;
  Interpolation interpolation = Interpolation::bilinear;
  Fill fill{};
  double p = 1;

  static constexpr Description kDescription{
      "aug_mix", "torchvision's AugMix. depth: operations in each of `width` chains; 0: 1 to 3, drawn.",
      Channels::one_or_three, true, true};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("severity", of.severity, Limits{.low = 1, .high = 10});
    visit("width", of.width, Limits{.low = 1, .high = 4});
    visit("depth", of.depth, Limits{.low = 0, .high = 4});
    visit("alpha", of.alpha, Limits{.low = 1e-3, .high = 1e6});
    visit("all_operations", of.all_operations, kSwitch);
    visit("interpolation", of.interpolation, kInterpolation);
    visit("fill", of.fill, kFill);
  }
};

// Touvron et al., "DeiT III", 2022: grayscale, solarize (128) or gaussian blur (sigma 0.1 to 2), each equally
// often.
struct ThreeAugment {
  double p = 1;

  static constexpr Description kDescription{
      "three_augment",
      "DeiT III: grayscale, solarize or gaussian blur. A color_jitter(0.3, 0.3, 0.3) follows it there.",
      Channels::one_or_three, false, true};
};

// As in Albumentations: `count` channels, drawn for each sample, get the value of `fill`.
struct ChannelDropout {
  std::uint32_t count = 1;
  std::array<float, 4> fill{};
  double p = 0.5;

  static constexpr Description kDescription{
      "channel_dropout", "`count` channels, drawn for each sample, become `fill`.", Channels::up_to_64};
  template <class Self, class Visit>
  static void members(Self& of, Visit& visit) {
    visit("count", of.count, Limits{.low = 1, .high = 63});  // and less than the channels
    visit("fill", of.fill, kFill);
  }
};

// visit(name, member, Limits) for each parameter of an operation, `p` last.
template <class One, class Visit>
void visit_members(One& one, Visit& visit) {
  if constexpr (requires { One::members(one, visit); })
    One::members(one, visit);
  else
    static_assert(sizeof(One) == sizeof(double), "an operation with parameters needs members()");
  visit("p", one.p, kProbability);
}

}  // namespace ops

// A new one comes last: the place of an operation in this list keys what is drawn for it.
using Operation =
    std::variant<ops::ColorJitter, ops::Grayscale, ops::GaussianBlur, ops::Solarize, ops::Posterize,
                 ops::Equalize, ops::AutoContrast, ops::Sharpness, ops::Invert, ops::Permute, ops::Affine,
                 ops::Rotation, ops::Perspective, ops::Erasing, ops::VerticalFlip, ops::Turns,
                 ops::PaddedCrop, ops::RandAugment, ops::TrivialAugment, ops::AutoAugment, ops::AugMix,
                 ops::ThreeAugment, ops::ChannelDropout>;

const ops::Description& description_of(const Operation& operation) noexcept;
std::string_view name_of(const Operation& operation) noexcept;  // "color_jitter", "rand_augment", ...

// All of them, each with its defaults.
const std::vector<Operation>& all_operations();
// The operation with its defaults. None: there is none of this name.
std::optional<Operation> operation_named(std::string_view name);
// An operation with the effect that one can see: the values of `shown`, and always applied.
Operation shown(Operation operation);

}  // namespace shard
