// The instructions that move pixels, from torchvision's parameters.
#pragma once

#include <array>
#include <vector>

#include "shard/loader/augment.hpp"

namespace shard::augment {

// torchvision's _get_inverse_affine_matrix: from a delivered to a source pixel, both from the image's centre.
// `center` likewise. Degrees and pixels.
struct AffineParameters {
  double degrees = 0;
  std::array<double, 2> translate{};
  double scale = 1;
  std::array<double, 2> shear{};
  std::array<double, 2> center{};
};
std::array<double, 6> inverse_affine_matrix(const AffineParameters& parameters) noexcept;

Instruction affine_instruction(const SampleSpec& pixels, const std::array<double, 6>& matrix,
                               Interpolation interpolation, const Fill& fill);
// torchvision's rotate(): turns by quarters are exact. Appends nothing for 0 degrees.
void append_rotation(const SampleSpec& pixels, double degrees, Interpolation interpolation, const Fill& fill,
                     std::vector<Instruction>& program);

using Corners = std::array<std::array<double, 2>, 4>;
// Coefficients that map each of `ends` to that of `starts` (_get_perspective_coeffs). False: there are none.
bool perspective_coefficients(const Corners& starts, const Corners& ends,
                              std::array<double, 8>& coefficients) noexcept;
Instruction perspective_instruction(const SampleSpec& pixels, const std::array<double, 8>& coefficients,
                                    Interpolation interpolation, const Fill& fill);

}  // namespace shard::augment
