// Built without contraction of floating-point expressions (see CMakeLists.txt): each step rounds to float32.
#include "transform/value_map.hpp"

#include <bit>
#include <cmath>

namespace shard {

namespace {

std::uint32_t bits_of(DType dtype, float value) noexcept {
  if (dtype == DType::f16) return f32_to_f16(value);
  if (dtype == DType::bf16) return f32_to_bf16(value);
  return std::bit_cast<std::uint32_t>(value);
}

float normalized(std::uint32_t byte, float mean, float std) noexcept {
  const float scaled = static_cast<float>(byte) / 255.0F;
  const float centered = scaled - mean;
  return centered / std;
}

bool gives(const ValueMap::Table& table, DType dtype, float scale, float bias) noexcept {
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    if (bits_of(dtype, std::fma(static_cast<float>(byte), scale, bias)) != table[byte]) return false;
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
  ValueMap map;
  map.dtype = dtype;
  map.fused = dtype != DType::f32;  // float32 has no slack for a line
  for (std::uint32_t channel = 0; channel < channels && channel < 4; ++channel) {
    map.mean[channel] = channel < 3 ? normalization.mean[channel] : 0.0F;
    map.std[channel] = channel < 3 ? normalization.std[channel] : 1.0F;
    for (std::uint32_t byte = 0; byte < 256; ++byte)
      map.bits[channel][byte] = bits_of(dtype, normalized(byte, map.mean[channel], map.std[channel]));
    map.fused = map.fused && find_line(map, channel);
  }
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
