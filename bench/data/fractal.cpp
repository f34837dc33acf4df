#include "data/fractal.hpp"

#include <algorithm>
#include <utility>

namespace shard::bench {
namespace {

// Doubles a row of `count` values to `out_count` (2 x count or one less), weights 3/4 and 1/4, ends repeated.
void double_row(const float* in, std::uint32_t count, float* out, std::uint32_t out_count) {
  for (std::uint32_t k = 0; k < count; ++k) {
    const float before = in[k > 0 ? k - 1 : 0];
    const float after = in[k + 1 < count ? k + 1 : k];
    out[2 * k] = 0.75F * in[k] + 0.25F * before;
    if (2 * k + 1 < out_count) out[2 * k + 1] = 0.75F * in[k] + 0.25F * after;
  }
}

Field doubled(const Field& in, std::uint32_t width, std::uint32_t height) {
  Field wide{width, in.height, std::vector<float>(std::size_t{width} * in.height)};
  for (std::uint32_t y = 0; y < in.height; ++y) double_row(in.row(y), in.width, wide.row(y), width);
  Field out{width, height, std::vector<float>(std::size_t{width} * height)};
  for (std::uint32_t y = 0; y < height; ++y) {
    const std::uint32_t k = y / 2;
    const std::uint32_t other = y % 2 == 0 ? (k > 0 ? k - 1 : 0) : std::min(k + 1, in.height - 1);
    const float* near = wide.row(k);
    const float* far = wide.row(other);
    float* to = out.row(y);
    for (std::uint32_t x = 0; x < width; ++x) to[x] = 0.75F * near[x] + 0.25F * far[x];
  }
  return out;
}

}  // namespace

Field fractal_noise(std::uint32_t width, std::uint32_t height, float gain, std::uint32_t finest,
                    Random random) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sizes{{width, height}};
  while (sizes.back().first > 3 || sizes.back().second > 3) {
    sizes.emplace_back((sizes.back().first + 1) / 2, (sizes.back().second + 1) / 2);
  }
  Field field{sizes.back().first, sizes.back().second, {}};
  field.values.assign(std::size_t{field.width} * field.height, 0.0F);
  // The coarsest octave's amplitude is such that the one of 8-pixel spacing has amplitude 1, whatever the
  // size and gain.
  float amplitude = 1.0F;
  for (std::size_t level = 3; level + 1 < sizes.size(); ++level) amplitude /= gain;
  for (std::size_t level = sizes.size(); level-- > 0;) {
    if (level + 1 < sizes.size()) field = doubled(field, sizes[level].first, sizes[level].second);
    if (level >= finest) {
      for (float& value : field.values) value += amplitude * random.bell();
    }
    amplitude *= gain;
  }
  return field;
}

}  // namespace shard::bench
