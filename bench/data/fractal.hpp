// Fractal noise: a field whose amplitude spectrum falls as 1/f, as that of natural scenes does (Field 1987:
// Relations between the statistics of natural images and the response properties of cortical cells).
#pragma once

#include <cstdint>
#include <vector>

#include "data/random.hpp"

namespace shard::bench {

// float32 [row, column], C order.
struct Field {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<float> values;
  const float* row(std::uint32_t y) const noexcept { return values.data() + std::size_t{y} * width; }
  float* row(std::uint32_t y) noexcept { return values.data() + std::size_t{y} * width; }
};

// White noise on grids of spacing 1, 2, 4, ... pixels, summed. Equal amplitudes an octave give 1/f; `gain` is
// the amplitude of an octave over that of the next coarser one (below 1: smoother). Octaves finer than
// `finest` (a spacing of 2^finest pixels) get no noise of their own. An octave's amplitude is about 1.
Field fractal_noise(std::uint32_t width, std::uint32_t height, float gain, std::uint32_t finest,
                    Random random);

}  // namespace shard::bench
