// The arithmetic of mixup, shared by host and CUDA: float32, each step rounded. Built without contraction.
#pragma once

#include <cstdint>

#include "shard/loader/mix.hpp"
#include "transform/augment/pixel_math.hpp"

namespace shard::augment {

SHARD_PIXEL float mixed(float value, float other, float share) noexcept {
  return value * share + other * (1.0F - share);
}
SHARD_PIXEL bool is_mixup(const MixPair& pair) noexcept {
  return pair.left == pair.right || pair.top == pair.bottom;
}
SHARD_PIXEL bool in_box(const MixPair& pair, std::uint32_t x, std::uint32_t y) noexcept {
  return x >= pair.left && x < pair.right && y >= pair.top && y < pair.bottom;
}

// Rows and columns of element i of a sample.
struct MixShape {
  std::uint32_t width;
  std::uint32_t height;
  std::uint32_t pixel;  // elements from column to column
  SHARD_HOST_DEVICE std::uint32_t column(std::uint64_t i) const noexcept {
    return static_cast<std::uint32_t>(i / pixel % width);
  }
  SHARD_HOST_DEVICE std::uint32_t row(std::uint64_t i) const noexcept {
    return static_cast<std::uint32_t>(i / pixel / width % height);
  }
};

}  // namespace shard::augment
