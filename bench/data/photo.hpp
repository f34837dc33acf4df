// Photo-like pictures: surfaces with 1/f texture, edges with occlusion, shading and soft shadows, colour, and
// sensor noise.
//
// Picture i is a pure function of (seed, i, classes): no standard distribution, no libm but sqrt, no state.
// Classes differ in dominant hue and in the shape that prevails, as far as a small network needs to tell them
// apart.
#pragma once

#include <cstdint>
#include <vector>

namespace shard::bench {

enum class Sampling : std::uint8_t { s420, s422, s444, gray };

// How picture i is to be made and stored; sizes and qualities are distributed as those of ImageNet's training
// set.
struct PhotoPlan {
  std::uint64_t seed = 0;
  std::uint64_t index = 0;
  std::uint32_t classes = 10;
  std::uint32_t label = 0;  // index % classes
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int quality = 90;  // of libjpeg, 1 to 100
  Sampling sampling = Sampling::s420;
  bool progressive = false;
};
PhotoPlan plan_photo(std::uint64_t seed, std::uint64_t index, std::uint32_t classes);

// Uint8 [row, column, (Y, Cb, Cr)], C order: JPEG's full-range YCbCr, as the encoder takes it.
std::vector<std::uint8_t> render_photo(const PhotoPlan& plan);

}  // namespace shard::bench
