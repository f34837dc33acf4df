// Where the pixels of a view come from, shared by host and CUDA, which therefore give the same bits.
//
// Files that include this are built without contraction of floating-point expressions (see CMakeLists.txt).
#pragma once

#include <cstdint>

#include "shard/loader/targets.hpp"
#include "transform/augment/mix_math.hpp"
#include "transform/augment/pixel_math.hpp"

namespace shard::targets {

using augment::Place;

// A pixel of the sample before a step, or none.
struct Origin {
  std::int32_t x = 0;
  std::int32_t y = 0;
  bool inside = true;
};

SHARD_PIXEL Origin nearest_to(Place place, std::int32_t width, std::int32_t height) noexcept {
  const float x = augment::nearest_whole(place.x);
  const float y = augment::nearest_whole(place.y);
  // False for NaN, too.
  if (x >= 0.0F && x <= static_cast<float>(width - 1) && y >= 0.0F && y <= static_cast<float>(height - 1))
    return {static_cast<std::int32_t>(x), static_cast<std::int32_t>(y), true};
  return {0, 0, false};
}

SHARD_PIXEL bool is_interpolated(Opcode opcode) noexcept {
  return opcode == Opcode::affine || opcode == Opcode::perspective;
}
// Of a step that is_interpolated(): the place that pixel (x, y) comes from.
SHARD_PIXEL Place place_of(const Instruction& step, std::int32_t x, std::int32_t y, std::int32_t width,
                           std::int32_t height) noexcept {
  const float* const real = reinterpret_cast<const float*>(&step.real);
  return step.opcode == Opcode::affine ? augment::affine_place(real, x, y, width, height)
                                       : augment::perspective_place(real, x, y, width, height);
}

// Of the other geometric steps: the pixel that pixel (x, y) comes from.
SHARD_PIXEL Origin exact_origin(const Instruction& step, std::int32_t x, std::int32_t y, std::int32_t width,
                                std::int32_t height) noexcept {
  const std::int32_t* const whole = reinterpret_cast<const std::int32_t*>(&step.whole);
  if (step.opcode == Opcode::flip_rows) return {x, height - 1 - y, true};
  if (step.opcode == Opcode::quarter_turns) {
    if (whole[0] == 2) return {width - 1 - x, height - 1 - y, true};
    return whole[0] == 1 ? Origin{width - 1 - y, x, true} : Origin{y, width - 1 - x, true};
  }
  std::int32_t row = y - whole[0];
  std::int32_t column = x - whole[1];
  if (whole[2] != 0) {
    row = augment::mirrored(row, height);
    column = augment::mirrored(column, width);
  }
  return {column, row, row >= 0 && row < height && column >= 0 && column < width};
}

SHARD_PIXEL Origin step_origin(const Instruction& step, std::int32_t x, std::int32_t y, std::int32_t width,
                               std::int32_t height) noexcept {
  if (is_interpolated(step.opcode)) return nearest_to(place_of(step, x, y, width, height), width, height);
  return exact_origin(step, x, y, width, height);
}

// torch's nearest: which of `box` pixels output pixel i of `out` comes from. scale: float(box) / float(out).
SHARD_PIXEL std::int32_t resized_origin(std::int32_t i, float scale, std::int32_t box) noexcept {
  const auto at = static_cast<std::int32_t>(augment::floor_of(static_cast<float>(i) * scale));
  return at < box - 1 ? at : box - 1;
}

// The crop of a sample in the form that pixels need.
struct CropMap {
  std::int32_t left = 0;
  std::int32_t top = 0;
  std::int32_t box_width = 0;
  std::int32_t box_height = 0;
  // What the box is resized to, and where that begins in the view.
  std::int32_t resized_width = 0;
  std::int32_t resized_height = 0;
  std::int32_t column = 0;
  std::int32_t row = 0;
  float across = 1;
  float down = 1;
  bool flip = false;
};
// The stored column or row of a pixel of the view. kOutside: the sample has none there.
inline constexpr std::int32_t kOutside = -1;
SHARD_PIXEL std::int32_t column_origin(const CropMap& crop, std::int32_t x, std::int32_t width) noexcept {
  const std::int32_t at = (crop.flip ? width - 1 - x : x) - crop.column;
  if (at < 0 || at >= crop.resized_width) return kOutside;
  return crop.left + resized_origin(at, crop.across, crop.box_width);
}
SHARD_PIXEL std::int32_t row_origin(const CropMap& crop, std::int32_t y) noexcept {
  const std::int32_t at = y - crop.row;
  if (at < 0 || at >= crop.resized_height) return kOutside;
  return crop.top + resized_origin(at, crop.down, crop.box_height);
}

// To the nearest u16, ties to even. NaN: 0.
SHARD_PIXEL std::uint16_t nearest_u16(float value) noexcept {
  value = value > 0.0F ? value : 0.0F;
  value = value < 65535.0F ? value : 65535.0F;
  return static_cast<std::uint16_t>(static_cast<std::int32_t>(augment::nearest_small(value)));
}

// Steps from element to element.
struct Strides {
  std::uint64_t row = 0;
  std::uint64_t column = 0;
  std::uint64_t channel = 0;
};
SHARD_PIXEL Strides strides_of(bool planar, std::uint32_t channels, std::uint32_t height,
                               std::uint32_t width) noexcept {
  if (planar) return {width, 1, std::uint64_t{height} * width};
  return {std::uint64_t{width} * channels, channels, 1};
}

// grid_sample with padding by zeros, then torchvision's fill, of one channel.
// `load(element)`: the value as float32.
template <class Load>
SHARD_PIXEL float bilinear_at(const Load& load, Place place, std::int32_t width, std::int32_t height,
                              const Strides& in, float fill) noexcept {
  const bool near_it = place.x > -1.0F && place.x < static_cast<float>(width) && place.y > -1.0F &&
                       place.y < static_cast<float>(height);
  if (!near_it) return fill;
  const float left = augment::floor_of(place.x);
  const float top = augment::floor_of(place.y);
  const float w = place.x - left;
  const float e = 1.0F - w;
  const float n = place.y - top;
  const float s = 1.0F - n;
  const auto x = static_cast<std::int32_t>(left);
  const auto y = static_cast<std::int32_t>(top);
  const float weights[4] = {s * e, s * w, n * e, n * w};
  float sum = 0.0F;
  float all = 0.0F;
  for (int k = 0; k < 4; ++k) {
    const std::int32_t column = x + k % 2;
    const std::int32_t row = y + k / 2;
    if (column < 0 || column >= width || row < 0 || row >= height) continue;
    sum = sum +
          load(static_cast<std::uint64_t>(row) * in.row + static_cast<std::uint64_t>(column) * in.column) *
              weights[k];
    all = all + weights[k];
  }
  return (sum - fill) * all + fill;
}

}  // namespace shard::targets
