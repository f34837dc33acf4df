#include "shard/loader/geometry.hpp"

#include <algorithm>
#include <cmath>

#include "fields/views.hpp"

namespace shard {

namespace {

Matrix3 product(const Matrix3& a, const Matrix3& b) noexcept {
  Matrix3 result{};
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 3; ++column)
      for (std::size_t k = 0; k < 3; ++k) result[row * 3 + column] += a[row * 3 + k] * b[k * 3 + column];
  return result;
}

// Scaled so that the last element is 1: the third coordinate of a point is what divides it.
Matrix3 inverse(const Matrix3& m) noexcept {
  Matrix3 result{m[4] * m[8] - m[5] * m[7], m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
                 m[5] * m[6] - m[3] * m[8], m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
                 m[3] * m[7] - m[4] * m[6], m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]};
  const double last = result[8];
  for (double& value : result) value /= last;
  return result;
}

// Instructions have the way back: from a pixel to where it comes from,
// in units of half of the size (pixel_math.hpp).
Matrix3 affine_matrix(const Instruction& step, double width, double height) noexcept {
  const auto& m = step.real;
  const double w = width / 2;
  const double h = height / 2;
  return inverse({m[0] * w, m[1] * w, (m[2] - m[0] * w - m[1] * h + 1) * w,  //
                  m[3] * h, m[4] * h, (m[5] - m[3] * w - m[4] * h + 1) * h,  //
                  0, 0, 1});
}

Matrix3 perspective_matrix(const Instruction& step, double width, double height) noexcept {
  const auto& c = step.real;
  const double w = width / 2;
  const double h = height / 2;
  return inverse({c[0] * w, c[1] * w, c[2] * w, c[3] * h, c[4] * h, c[5] * h, c[6], c[7], 1});
}

Matrix3 turn_matrix(std::int32_t turns, double width, double height) noexcept {
  if (turns == 1) return {0, 1, 0, -1, 0, width, 0, 0, 1};
  if (turns == 2) return {-1, 0, width, 0, -1, height, 0, 0, 1};
  return {0, -1, height, 1, 0, 0, 0, 0, 1};
}

Matrix3 step_matrix(const Instruction& step, double width, double height) noexcept {
  switch (step.opcode) {
    case Opcode::affine:
      return affine_matrix(step, width, height);
    case Opcode::perspective:
      return perspective_matrix(step, width, height);
    case Opcode::flip_rows:
      return {1, 0, 0, 0, -1, height, 0, 0, 1};
    case Opcode::quarter_turns:
      return turn_matrix(step.whole[0], width, height);
    default:  // shift: rows down, columns right
      return {1, 0, static_cast<double>(step.whole[1]), 0, 1, static_cast<double>(step.whole[0]), 0, 0, 1};
  }
}

Matrix3 resize_matrix(const Geometry& geometry) noexcept {
  const SampleCrop& crop = geometry.crop;
  const double width = crop.resized_width != 0 ? crop.resized_width : geometry.width;
  const double height = crop.resized_height != 0 ? crop.resized_height : geometry.height;
  const double across = width / crop.width;
  const double down = height / crop.height;
  const double row = crop.row;
  if (crop.flip)
    return {-across, 0, static_cast<double>(geometry.width) - crop.column, 0, down, row, 0, 0, 1};
  return {across, 0, static_cast<double>(crop.column), 0, down, row, 0, 0, 1};
}

Matrix3 crop_matrix(const SampleCrop& crop) noexcept {
  return {1, 0, -static_cast<double>(crop.left), 0, 1, -static_cast<double>(crop.top), 0, 0, 1};
}

PointXY moved(const Matrix3& m, double x, double y) noexcept {
  const double divisor = m[6] * x + m[7] * y + m[8];
  return {(m[0] * x + m[1] * y + m[2]) / divisor, (m[3] * x + m[4] * y + m[5]) / divisor};
}

// Adds the interval that `factor` makes of [low, high].
void add_scaled(double factor, double low, double high, double& sum_low, double& sum_high) noexcept {
  const double a = factor * low;
  const double b = factor * high;
  sum_low += std::min(a, b);
  sum_high += std::max(a, b);
}

// The upright box around the four moved corners.
BoxXY around(const Matrix3& m, const BoxXY& box) noexcept {
  if (m[6] == 0 && m[7] == 0) {  // without corners: the last element is 1
    BoxXY result{m[2], m[5], m[2], m[5]};
    add_scaled(m[0], box.left, box.right, result.left, result.right);
    add_scaled(m[1], box.top, box.bottom, result.left, result.right);
    add_scaled(m[3], box.left, box.right, result.top, result.bottom);
    add_scaled(m[4], box.top, box.bottom, result.top, result.bottom);
    return result;
  }
  const std::array<PointXY, 4> corners{moved(m, box.left, box.top), moved(m, box.right, box.top),
                                       moved(m, box.right, box.bottom), moved(m, box.left, box.bottom)};
  BoxXY result{corners[0].x, corners[0].y, corners[0].x, corners[0].y};
  for (const PointXY& corner : corners) {
    result.left = std::min(result.left, corner.x);
    result.right = std::max(result.right, corner.x);
    result.top = std::min(result.top, corner.y);
    result.bottom = std::max(result.bottom, corner.y);
  }
  return result;
}

bool is_finite(const BoxXY& box) noexcept {
  return std::isfinite(box.left) && std::isfinite(box.top) && std::isfinite(box.right) &&
         std::isfinite(box.bottom);
}

bool has_area(const BoxXY& box) noexcept { return box.left < box.right && box.top < box.bottom; }

}  // namespace

bool is_geometric(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::affine:
    case Opcode::perspective:
    case Opcode::flip_rows:
    case Opcode::quarter_turns:
    case Opcode::shift:
      return true;
    default:
      return false;
  }
}

void append_geometric(std::span<const Instruction> program, std::vector<Instruction>& steps) {
  std::copy_if(program.begin(), program.end(), std::back_inserter(steps),
               [](const Instruction& one) { return is_geometric(one.opcode); });
}

Geometry draw_geometry(const TransformWork& work, const TransformOptions& options, std::uint64_t seed,
                       std::uint64_t epoch, std::uint64_t draw, std::uint32_t view) {
  Geometry geometry;
  geometry.crop = draw_crop(work.stored, options, crop_seed(seed, view), epoch, draw);
  geometry.height = work.delivered.height;
  geometry.width = work.delivered.width;
  if (options.padded != 0 || options.patch != 0) {
    geometry.height = geometry.crop.resized_height;
    geometry.width = geometry.crop.resized_width;
  }
  std::vector<Instruction> program;
  const SampleSpec pixels = work.delivered.sized(geometry.height, geometry.width);
  draw_program(pixels, options.operations, seed, epoch, draw, view, program);
  append_geometric(program, geometry.steps);
  return geometry;
}

void steps_of(const Geometry& geometry, std::vector<GeometryStep>& steps) {
  const double height = geometry.height;
  const double width = geometry.width;
  steps.clear();
  steps.push_back({crop_matrix(geometry.crop), static_cast<double>(geometry.crop.height),
                   static_cast<double>(geometry.crop.width)});
  steps.push_back({resize_matrix(geometry), height, width});
  for (const Instruction& step : geometry.steps)
    steps.push_back({step_matrix(step, width, height), height, width});
}

Matrix3 matrix_of(const Geometry& geometry) {
  std::vector<GeometryStep> steps;
  steps_of(geometry, steps);
  Matrix3 result = steps[0].matrix;
  for (std::size_t i = 1; i < steps.size(); ++i) result = product(steps[i].matrix, result);
  return result;
}

std::optional<MovedBox> move_box(std::span<const GeometryStep> steps, const BoxXY& box) noexcept {
  if (!is_finite(box) || !has_area(box)) return std::nullopt;
  MovedBox result{box, 1};
  for (const GeometryStep& step : steps) {
    const BoxXY whole = around(step.matrix, result.box);
    if (!is_finite(whole)) return std::nullopt;
    result.box = {std::clamp(whole.left, 0.0, step.width), std::clamp(whole.top, 0.0, step.height),
                  std::clamp(whole.right, 0.0, step.width), std::clamp(whole.bottom, 0.0, step.height)};
    // What only touches the edge is a line or a point. A later rotation would make a box of it again.
    if (!has_area(result.box)) return std::nullopt;
    result.visible *= result.box.area() / whole.area();
  }
  return result;
}

std::optional<PointXY> move_point(std::span<const GeometryStep> steps, const PointXY& point) noexcept {
  PointXY at = point;
  for (const GeometryStep& step : steps) {
    at = moved(step.matrix, at.x, at.y);
    // False for NaN, too.
    if (!(at.x >= 0 && at.x < step.width && at.y >= 0 && at.y < step.height)) return std::nullopt;
  }
  return at;
}

bool mirrors(const Geometry& geometry) noexcept {
  const auto flips = std::count_if(geometry.steps.begin(), geometry.steps.end(),
                                   [](const Instruction& step) { return step.opcode == Opcode::flip_rows; });
  return geometry.crop.flip != (flips % 2 == 1);
}

}  // namespace shard
