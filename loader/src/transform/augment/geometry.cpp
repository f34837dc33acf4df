#include "transform/augment/geometry.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace shard::augment {

namespace {

double radians(double degrees) noexcept { return degrees * (std::numbers::pi / 180); }

void set_fill(const Fill& fill, Interpolation interpolation, std::size_t first_real,
              Instruction& instruction) noexcept {
  instruction.whole[0] = interpolation == Interpolation::bilinear ? 1 : 0;
  instruction.whole[1] = fill ? 1 : 0;
  if (fill)
    std::copy(fill->begin(), fill->end(), instruction.real.begin() + static_cast<std::ptrdiff_t>(first_real));
}

// As in torch: float32 by float32.
float share(double value, std::uint32_t size) noexcept {
  return static_cast<float>(value) / (0.5F * static_cast<float>(size));
}

}  // namespace

std::array<double, 6> inverse_affine_matrix(const AffineParameters& p) noexcept {
  const double rotation = radians(p.degrees);
  const double shear_x = radians(p.shear[0]);
  const double shear_y = radians(p.shear[1]);
  const double a = std::cos(rotation - shear_y) / std::cos(shear_y);
  const double b = -(a * std::tan(shear_x) + std::sin(rotation));
  const double c = std::sin(rotation - shear_y) / std::cos(shear_y);
  const double d = std::cos(rotation) - c * std::tan(shear_x);
  std::array<double, 6> m{d / p.scale, -b / p.scale, 0, -c / p.scale, a / p.scale, 0};
  const double x = p.center[0] + p.translate[0];
  const double y = p.center[1] + p.translate[1];
  m[2] += p.center[0] - m[0] * x - m[1] * y;
  m[5] += p.center[1] - m[3] * x - m[4] * y;
  return m;
}

Instruction affine_instruction(const SampleSpec& pixels, const std::array<double, 6>& matrix,
                               Interpolation interpolation, const Fill& fill) {
  Instruction instruction{Opcode::affine};
  for (std::size_t i = 0; i < 6; ++i)
    instruction.real[i] = share(matrix[i], i < 3 ? pixels.width : pixels.height);
  set_fill(fill, interpolation, 6, instruction);
  return instruction;
}

void append_rotation(const SampleSpec& pixels, double degrees, Interpolation interpolation, const Fill& fill,
                     std::vector<Instruction>& program) {
  double angle = std::fmod(degrees, 360);
  if (angle < 0) angle += 360;
  if (angle == 0) return;
  const bool square = pixels.height == pixels.width;
  if (angle == 180 || (square && (angle == 90 || angle == 270))) {
    program.push_back({Opcode::quarter_turns, {static_cast<std::int32_t>(angle / 90)}});
    return;
  }
  AffineParameters parameters;
  parameters.degrees = -angle;
  program.push_back(affine_instruction(pixels, inverse_affine_matrix(parameters), interpolation, fill));
}

// 8 equations for 8 numbers, by elimination with the largest pivots.
bool perspective_coefficients(const Corners& starts, const Corners& ends,
                              std::array<double, 8>& coefficients) noexcept {
  std::array<std::array<double, 9>, 8> rows{};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto [x, y] = ends[i];
    const auto [u, v] = starts[i];
    rows[2 * i] = {x, y, 1, 0, 0, 0, -u * x, -u * y, u};
    rows[2 * i + 1] = {0, 0, 0, x, y, 1, -v * x, -v * y, v};
  }
  for (std::size_t column = 0; column < 8; ++column) {
    std::size_t best = column;
    for (std::size_t row = column + 1; row < 8; ++row)
      if (std::abs(rows[row][column]) > std::abs(rows[best][column])) best = row;
    if (std::abs(rows[best][column]) < 1e-9) return false;
    std::swap(rows[column], rows[best]);
    for (std::size_t row = 0; row < 8; ++row) {
      if (row == column) continue;
      const double factor = rows[row][column] / rows[column][column];
      for (std::size_t k = column; k < 9; ++k) rows[row][k] -= factor * rows[column][k];
    }
  }
  for (std::size_t i = 0; i < 8; ++i) coefficients[i] = rows[i][8] / rows[i][i];
  return true;
}

Instruction perspective_instruction(const SampleSpec& pixels, const std::array<double, 8>& coefficients,
                                    Interpolation interpolation, const Fill& fill) {
  Instruction instruction{Opcode::perspective};
  for (std::size_t i = 0; i < 6; ++i)
    instruction.real[i] = share(coefficients[i], i < 3 ? pixels.width : pixels.height);
  instruction.real[6] = static_cast<float>(coefficients[6]);
  instruction.real[7] = static_cast<float>(coefficients[7]);
  set_fill(fill, interpolation, 8, instruction);
  return instruction;
}

}  // namespace shard::augment
