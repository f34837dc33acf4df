// Where the parts of a stored sample are in a view: what moves masks,
// boxes and keypoints as the pixels were moved.
//
//   stored sample ─▶ box cut out ─▶ resized, placed ─▶ flipped ─▶ steps, one after the other ─▶ view
//
// Coordinates are continuous: column c covers [c, c + 1) and its centre is c + 0.5, as in boxes of
// torchvision. A resize from w to v columns is x * v / w, a flip is v - x. Points are (x, y, 1), x to the
// right and y down. Matrices are 3 x 3 in C order, and the third coordinate of the result divides the others.
//
// Pure functions, for any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shard/loader/augment.hpp"
#include "shard/loader/transform.hpp"

namespace shard {

// True for instructions that move pixels: affine, perspective, flip_rows, quarter_turns, shift.
bool is_geometric(Opcode opcode) noexcept;
// Appends the geometric instructions of a program.
void append_geometric(std::span<const Instruction> program, std::vector<Instruction>& steps);

// What happens to the places of one sample in one view.
struct Geometry {
  SampleCrop crop;
  // Rows and columns of the view. Padded samples: those of the sample in it, which begins at row 0 and column
  // 0, flipped or not, and `crop` is not place_padded().
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  // Geometric instructions, in the order in which they are executed.
  std::vector<Instruction> steps;
  bool operator==(const Geometry&) const = default;
};

// The geometry of one sample. `work`: plan_transform() of the view. The other arguments are those of
// draw_crop() and draw_program(); `view` counts from 0. work.stored: of this sample, if its size is its own.
Geometry draw_geometry(const TransformWork& work, const TransformOptions& options, std::uint64_t seed,
                       std::uint64_t epoch, std::uint64_t draw, std::uint32_t view);

using Matrix3 = std::array<double, 9>;
// From the stored sample to the view.
Matrix3 matrix_of(const Geometry& geometry);

struct PointXY {
  double x = 0;
  double y = 0;
};
// left <= right, top <= bottom.
struct BoxXY {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
  double area() const noexcept { return (right - left) * (bottom - top); }
};

// The steps of a geometry as matrices, each with the rows and columns that its result has.
struct GeometryStep {
  Matrix3 matrix{};
  double height = 0;
  double width = 0;
};
// Replaces `steps`, whose memory is used again.
void steps_of(const Geometry& geometry, std::vector<GeometryStep>& steps);

// A box after all steps. As in torchvision, each step makes the smallest upright box around the four moved
// corners, and clips it. `visible`: the share of the area that no step has clipped. Empty: the box is not
// finite, is inverted or without area, or after some step no area of it is left, as where it only touches
// the edge of the crop.
struct MovedBox {
  BoxXY box;
  double visible = 1;
};
std::optional<MovedBox> move_box(std::span<const GeometryStep> steps, const BoxXY& box) noexcept;
// Empty: the point is not finite, or a step has moved it out of the sample.
std::optional<PointXY> move_point(std::span<const GeometryStep> steps, const PointXY& point) noexcept;
// True if the steps mirror the sample, so that left and right change their places.
bool mirrors(const Geometry& geometry) noexcept;

}  // namespace shard
