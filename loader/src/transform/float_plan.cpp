// Built without contraction of floating-point expressions (see CMakeLists.txt).
#include <algorithm>

#include "transform/check_work.hpp"
#include "transform/float_kernels.hpp"

namespace shard {

void FloatNormalization::set(const TransformWork& work, std::uint32_t first, std::uint32_t count) {
  divisor = scale_of(work);
  none = !work.normalize;
  channels = count;
  mean.resize(count + kLanes);
  std.resize(count + kLanes);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const std::size_t c = first + i % count;
    mean[i] = mean_of(work.normalization, c);
    std[i] = std_of(work.normalization, c);
  }
}

void FloatTaps::build(std::uint32_t box, std::uint32_t out) {
  const auto box_size = static_cast<std::int32_t>(box);
  const auto out_size = static_cast<std::int32_t>(out);
  pitch = out;
  taps.resize(out);
  max_taps = 1;
  for (std::uint32_t x = 0; x < out; ++x) {
    taps[x] = taps_of(box_size, out_size, static_cast<std::int32_t>(x));
    max_taps = std::max(max_taps, taps[x].count);
  }
  weights.assign(pitch * max_taps, 0.0F);
  for (std::uint32_t x = 0; x < out; ++x) {
    const auto at = static_cast<std::int32_t>(x);
    const float total = tap_total(box_size, out_size, at, taps[x]);
    for (std::uint32_t k = 0; k < taps[x].count; ++k)
      weights[k * pitch + x] = float_weight(box_size, out_size, at, taps[x], k, total);
  }
}

void FloatColumns::build(std::uint32_t box, std::uint32_t out, std::uint32_t interleaved, bool flip) {
  taps_.build(box, out);
  channels = interleaved;
  max_taps = taps_.max_taps;
  const std::size_t values = std::size_t{out} * channels;
  pitch = float_row(values);
  at.assign(pitch, 0);
  weights.assign(pitch * max_taps, 0.0F);
  for (std::size_t j = 0; j < values; ++j) {
    const std::size_t pixel = flip ? out - 1 - j / channels : j / channels;
    at[j] = static_cast<std::int32_t>(taps_.taps[pixel].first * channels + j % channels);
    for (std::size_t k = 0; k < max_taps; ++k)
      weights[k * pitch + j] = taps_.weights[k * taps_.pitch + pixel];
  }
}

}  // namespace shard
