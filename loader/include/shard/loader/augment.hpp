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
#include <string_view>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "shard/error.hpp"
#include "shard/loader/operations.hpp"

namespace shard {

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
  permute,        // whole[c]: input channel of output channel c
  drop_channels,  // whole: a bit for each of channels 0 to 31, and 32 to 63; real: 4 values
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
// In the same order.
inline constexpr auto kOpcodeNames = std::to_array<std::string_view>(
    {"brightness", "posterize",  "solarize",    "invert",      "contrast",  "autocontrast",
     "equalize",   "saturation", "hue",         "grayscale",   "permute",   "drop_channels",
     "sharpness",  "blur",       "affine",      "perspective", "flip_rows", "quarter_turns",
     "shift",      "erase",      "erase_noise", "keep",        "restore",   "mix_set",
     "mix_add",    "mix_end"});
static_assert(kOpcodeNames.size() == static_cast<std::size_t>(Opcode::mix_end) + 1);
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
