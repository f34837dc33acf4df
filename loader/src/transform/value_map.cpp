#include "transform/value_map.hpp"

#include <cmath>

namespace shard {

namespace {

bool gives(const ValueTable::Channel& table, DType dtype, float scale, float bias) noexcept {
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    if (rounded_bits(dtype, std::fma(static_cast<float>(byte), scale, bias)) != table[byte]) return false;
  return true;
}

float nudged(float value, int steps) noexcept {
  for (; steps > 0; --steps) value = std::nextafter(value, HUGE_VALF);
  for (; steps < 0; ++steps) value = std::nextafter(value, -HUGE_VALF);
  return value;
}

// A line through the table of one channel; near the exact one, since a few bytes may lie next to a rounding
// boundary.
bool find_line(ValueMap& map, std::uint32_t channel) noexcept {
  const double exact_scale = 1.0 / (255.0 * static_cast<double>(map.std[channel]));
  const double exact_bias = -static_cast<double>(map.mean[channel]) / static_cast<double>(map.std[channel]);
  constexpr std::array<int, 7> kSteps{0, 1, -1, 2, -2, 3, -3};
  for (int scale_steps : kSteps) {
    for (int bias_steps : kSteps) {
      map.scale[channel] = nudged(static_cast<float>(exact_scale), scale_steps);
      map.bias[channel] = nudged(static_cast<float>(exact_bias), bias_steps);
      if (gives(map.bits[channel], map.dtype, map.scale[channel], map.bias[channel])) return true;
    }
  }
  return false;
}

}  // namespace

ValueMap make_value_map(DType dtype, const Normalization& normalization, std::uint32_t channels) {
  ValueMap map{{dtype, normalization, channels}};
  map.fused = dtype != DType::f32;  // float32 has no slack for a line
  for (std::uint32_t channel = 0; channel < channels; ++channel)
    map.fused = map.fused && find_line(map, channel);
  return map;
}

ValueMap make_value_map(const TransformWork& work) {
  return make_value_map(work.delivered.dtype, work.normalize ? work.normalization : Normalization{},
                        work.delivered.channels);
}

const ValueMap& cached_value_map(const TransformWork& work) {
  struct Cached {
    DType dtype = DType::f32;
    std::uint32_t channels = 0;
    bool normalize = false;
    Normalization normalization;
    bool operator==(const Cached&) const = default;
  };
  static thread_local Cached cached;
  static thread_local ValueMap map;
  const Cached wanted{work.delivered.dtype, work.delivered.channels, work.normalize, work.normalization};
  if (!(cached == wanted)) {
    map = make_value_map(work);
    cached = wanted;
  }
  return map;
}

}  // namespace shard
