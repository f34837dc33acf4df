// Augmentation: operations on the pixels of a sample after crop, resize and flip, and before normalisation.
//
//   stored sample ─▶ crop, resize, flip ─▶ u8 [row, column, channel] ─▶ operations ─▶ normalise, cast, layout
//
// Operations are those of torchvision.transforms.v2 on uint8 tensors, with the same parameters
// (docs/augment.md has each formula and source). What is drawn for a sample is its program: a short list of
// instructions with all parameters in them. draw_program() makes it on the host, also for the policies
// (RandAugment, AutoAugment, ...), so devices know nothing of probabilities. Host and CUDA execute a program
// with the same bits: all arithmetic is integer, or float32 with one rounding per step in a stated order
// (loader/src/transform/augment/pixel_math.hpp).
//
// Draws come from Philox4x32-10, keyed by (seed, epoch, sample, view, kind of operation, how many of this
// kind came before). So they are the same for every rank, device, thread count and point of resume, and
// adding an operation does not change what is drawn for others of other kinds.
//
// Everything here is pure and may be called from any thread. Errors: invalid_argument, naming the view, the
// operation, the value and its bounds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"

namespace shard {

// A parameter that is drawn uniformly from [low, high].
struct Range {
  double low = 0;
  double high = 0;
  bool operator==(const Range&) const = default;
};

enum class Interpolation : std::uint8_t { nearest, bilinear };
// What pixels outside of the sample are, per channel, 0 to 255. Channels after the fourth have the first
// value. None: 0, and with bilinear, pixels at the border are not mixed with it (torchvision's fill=None).
using Fill = std::optional<std::array<float, 4>>;

namespace ops {

// In all of them, `probability` is that of being applied, 0 to 1.

// torchvision's ColorJitter: factors of brightness, contrast and saturation, at least 0, and the shift of the
// hue, -0.5 to 0.5. None: this part is left out. The parts come in a random order, or in that of their names
// here. Samples of 1 or 3 channels.
struct ColorJitter {
  std::optional<Range> brightness{};
  std::optional<Range> contrast{};
  std::optional<Range> saturation{};
  std::optional<Range> hue{};
  bool random_order = true;
  double probability = 1;
};
// Samples of 1 or 3 channels.
struct Grayscale {
  double probability = 1;
};
// A kernel of kernel_size x kernel_size, which is odd, 1 to 31; its half is less than the rows and columns.
struct GaussianBlur {
  std::uint32_t kernel_size = 23;
  Range sigma{0.1, 2.0};
  double probability = 1;
};
// Values of at least `threshold`, up to 255, become 255 - value.
struct Solarize {
  double threshold = 128;
  double probability = 1;
};
// Keeps the upper `bits`, 0 to 8.
struct Posterize {
  std::uint32_t bits = 8;
  double probability = 1;
};
// At most 4 channels.
struct Equalize {
  double probability = 1;
};
// Samples of 1 or 3 channels.
struct AutoContrast {
  double probability = 1;
};
// The factor, at least 0: 0 blurs, 1 changes nothing. Samples of 1 or 3 channels.
struct Sharpness {
  Range factor{2, 2};
  double probability = 1;
};
struct Invert {
  double probability = 1;
};
// Output channel c is input channel order[c]. None: drawn. At most 4 channels.
struct ChannelPermutation {
  std::optional<std::array<std::uint32_t, 4>> order{};
  double probability = 1;
};
// torchvision's RandomAffine about the centre. Degrees; translations as shares of columns and rows, 0 to 1,
// drawn in whole pixels; scale above 0; shears in degrees, between -90 and 90.
struct Affine {
  Range degrees{};
  std::array<double, 2> translate{};
  Range scale{1, 1};
  Range shear_x{};
  Range shear_y{};
  Interpolation interpolation = Interpolation::nearest;
  Fill fill = std::array<float, 4>{};
  double probability = 1;
};
// torchvision's RandomRotation, without expansion: counter-clockwise.
struct Rotation {
  Range degrees{};
  Interpolation interpolation = Interpolation::nearest;
  Fill fill = std::array<float, 4>{};
  double probability = 1;
};
// torchvision's RandomPerspective. distortion: 0 to 1.
struct Perspective {
  double distortion = 0.5;
  Interpolation interpolation = Interpolation::bilinear;
  Fill fill = std::array<float, 4>{};
  double probability = 0.5;
};
// torchvision's RandomErasing of a rectangle: `scale` is its share of the area, `ratio` height / width.
// Without a value, each byte is uniform in 0 to 255.
struct Erasing {
  Range scale{0.02, 0.33};
  Range ratio{0.3, 3.3};
  std::optional<std::array<float, 4>> value = std::array<float, 4>{};
  double probability = 0.5;
};
struct VerticalFlip {
  double probability = 0.5;
};
// By 0, 90, 180 or 270 degrees counter-clockwise, each equally often, or always by `turns` quarters.
// 1 and 3: samples that are as high as wide.
struct QuarterTurns {
  std::optional<std::uint32_t> turns{};
  double probability = 1;
};
// torchvision's RandomCrop of the view's own size with padding on all sides: the sample moves by at most
// `padding` rows and columns. reflect: padding is less than the rows and columns.
struct PaddedCrop {
  std::uint32_t padding = 4;
  bool reflect = false;
  std::array<float, 4> fill{};
  double probability = 1;
};

// Policies. Samples of 1 or 3 channels.
//
// Cubuk et al., "RandAugment", 2019: `count` operations, up to 16, of equal strength:
// magnitude of `bins` steps.
struct RandAugment {
  std::uint32_t count = 2;
  std::uint32_t magnitude = 9;
  std::uint32_t bins = 31;
  Interpolation interpolation = Interpolation::nearest;
  Fill fill{};
  double probability = 1;
};
// Mueller and Hutter, "TrivialAugment", 2021: one operation of any strength.
struct TrivialAugmentWide {
  std::uint32_t bins = 31;
  Interpolation interpolation = Interpolation::nearest;
  Fill fill{};
  double probability = 1;
};
enum class AutoAugmentPolicy : std::uint8_t { imagenet, cifar10, svhn };
// Cubuk et al., "AutoAugment", 2018: one of 25 pairs of operations.
struct AutoAugment {
  AutoAugmentPolicy policy = AutoAugmentPolicy::imagenet;
  Interpolation interpolation = Interpolation::nearest;
  Fill fill{};
  double probability = 1;
};
// Hendrycks et al., "AugMix", 2019: the sample mixed with `width` chains of operations. severity: 1 to 10;
// width: 1 to 4; depth: 1 to 4, 0: 1 to 3, drawn per chain; alpha above 0.
struct AugMix {
  std::uint32_t severity = 3;
  std::uint32_t width = 3;
  std::uint32_t depth = 0;
  double alpha = 1;
  bool all_operations = true;
  Interpolation interpolation = Interpolation::bilinear;
  Fill fill{};
  double probability = 1;
};
// Touvron et al., "DeiT III", 2022: grayscale, solarize (128) or gaussian blur (sigma 0.1 to 2), each equally
// often. A ColorJitter of 0.3 follows it in the paper.
struct ThreeAugment {
  double probability = 1;
};

}  // namespace ops

using Operation =
    std::variant<ops::ColorJitter, ops::Grayscale, ops::GaussianBlur, ops::Solarize, ops::Posterize,
                 ops::Equalize, ops::AutoContrast, ops::Sharpness, ops::Invert, ops::ChannelPermutation,
                 ops::Affine, ops::Rotation, ops::Perspective, ops::Erasing, ops::VerticalFlip,
                 ops::QuarterTurns, ops::PaddedCrop, ops::RandAugment, ops::TrivialAugmentWide,
                 ops::AutoAugment, ops::AugMix, ops::ThreeAugment>;
// As in Python: "color_jitter", "rand_augment", ...
std::string_view name_of(const Operation& operation) noexcept;

// What an instruction does to the pixels. Parameters are in `whole` and `real`, in this order; all of them
// are float32 values when they are drawn. "swaps": the result is written to the other one of two buffers.
enum class Opcode : std::uint32_t {
  // Tables: value -> value.
  brightness,  // real: factor
  posterize,   // whole: mask
  solarize,    // real: threshold
  invert,
  // Tables that depend on the pixels.
  contrast,  // real: factor, 1 - factor
  autocontrast,
  equalize,
  // Pixel by pixel.
  saturation,  // real: factor, 1 - factor
  hue,         // real: shift
  grayscale,
  permute,  // whole[c]: input channel of output channel c
  // Neighbours. All swap.
  sharpness,    // real: 1 - factor
  blur,         // whole: kernel size; real[d]: weight at distance d
  affine,       // whole: bilinear, fills; real: 6 of the matrix, then 4 fills
  perspective,  // whole: bilinear, fills; real: 8 coefficients, then 4 fills
  flip_rows,
  quarter_turns,  // whole: turns, 1 to 3
  shift,          // whole: rows down, columns right, reflect; real: 4 fills
  // In place.
  erase,        // whole: top, left, height, width; real: 4 values
  erase_noise,  // whole: top, left, height, width, and two words that key the bytes
  // AugMix: a second copy of the pixels and a sum.
  keep,     // copy = pixels
  restore,  // pixels = copy
  mix_set,  // real: weight; sum = weight * pixels
  mix_add,  // real: weight; sum += weight * pixels
  mix_end,  // pixels = sum, cut off
};
inline constexpr std::size_t kOpcodes = 25;
std::string_view to_string(Opcode opcode) noexcept;

// Fixed size, without pointers: programs go to the device as they are.
struct Instruction {
  Opcode opcode = Opcode::invert;
  std::array<std::int32_t, 7> whole{};
  std::array<float, 16> real{};
  bool operator==(const Instruction&) const = default;
};
static_assert(sizeof(Instruction) == 96);

// Throws unless `operations` can be applied to samples of `pixels`, which is what crop and resize deliver.
// `view`: named in errors.
void check_operations(const SampleSpec& pixels, const std::vector<Operation>& operations,
                      std::uint32_t view = 0);

// Appends the program of one sample of one view to `program`. `draw`: the sample's index, or what
// BatchIndices::draws says. Arguments must have passed check_operations(). Instructions that would change
// nothing are left out, if this is known.
void draw_program(const SampleSpec& pixels, const std::vector<Operation>& operations, std::uint64_t seed,
                  std::uint64_t epoch, std::uint64_t draw, std::uint32_t view,
                  std::vector<Instruction>& program);

// Executes a program on the calling thread. `pixels`: u8 [row, column, channel]; changed in place.
void run_program(const SampleSpec& spec, const std::vector<Instruction>& program, std::uint8_t* pixels);

// True if a program of these operations needs the copy and the sum of AugMix.
bool mixes(const std::vector<Operation>& operations) noexcept;

}  // namespace shard
