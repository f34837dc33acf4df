// Built without contraction of floating-point expressions (see CMakeLists.txt): each step rounds to float32.
#include "shard/normalization.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace shard {

bool is_identity(const Normalization& normalization) noexcept {
  const auto all = [](const std::vector<float>& values, float one) {
    return std::all_of(values.begin(), values.end(), [one](float value) { return value == one; });
  };
  return all(normalization.mean, 0.0F) && all(normalization.std, 1.0F);
}

Normalization for_channels(Normalization normalization, std::uint32_t channels) {
  if (channels < 3 && normalization.mean.size() == channels && normalization.std.size() == channels) {
    normalization.mean.resize(3, 0.0F);
    normalization.std.resize(3, 1.0F);
  }
  return normalization;
}

float normalized_value(std::uint8_t byte, float mean, float std) noexcept {
  const float scaled = static_cast<float>(byte) / 255.0F;
  const float centered = scaled - mean;
  return centered / std;
}

std::uint32_t rounded_bits(DType dtype, float value) noexcept {
  if (dtype == DType::f16) return f32_to_f16(value);
  if (dtype == DType::bf16) return f32_to_bf16(value);
  return std::bit_cast<std::uint32_t>(value);
}

float value_of_bits(DType dtype, std::uint32_t bits) noexcept {
  if (dtype == DType::f16) return f16_to_f32(static_cast<std::uint16_t>(bits));
  if (dtype == DType::bf16) return bf16_to_f32(static_cast<std::uint16_t>(bits));
  return std::bit_cast<float>(bits);
}

ValueTable::ValueTable(DType type, const Normalization& normalization, std::uint32_t channel_count) noexcept
    : dtype(type), channels(std::min<std::uint32_t>(channel_count, 4)) {
  for (std::size_t channel = 0; channel < channels; ++channel) {
    mean[channel] = mean_of(normalization, channel);
    std[channel] = std_of(normalization, channel);
    for (std::size_t byte = 0; byte < 256; ++byte)
      bits[channel][byte] =
          rounded_bits(dtype, normalized_value(static_cast<std::uint8_t>(byte), mean[channel], std[channel]));
  }
}

int ValueTable::byte_of(std::uint32_t wanted, std::size_t channel) const noexcept {
  const float value = value_of_bits(dtype, wanted);
  // Values grow with the byte, or fall where std is negative; neighbours may be equal.
  const bool falls = std[channel] < 0.0F;
  const auto before = [&](std::uint32_t other, float limit) {
    const float at = value_of_bits(dtype, other);
    return falls ? at > limit : at < limit;
  };
  const Channel& table = bits[channel];
  auto found = std::lower_bound(table.begin(), table.end(), value, before);
  // -0 and 0 are equal, but not the same bits.
  while (found != table.end() && *found != wanted && value_of_bits(dtype, *found) == value) ++found;
  return found != table.end() && *found == wanted ? static_cast<int>(found - table.begin()) : -1;
}

std::uint8_t ValueTable::nearest_byte(std::uint32_t wanted, std::size_t channel) const noexcept {
  const double position =
      (static_cast<double>(value_of_bits(dtype, wanted)) * static_cast<double>(std[channel]) +
       static_cast<double>(mean[channel])) *
      255.0;
  std::size_t nearest = 0;  // of NaN too
  if (position > 0) nearest = position >= 255 ? 255 : static_cast<std::size_t>(std::lround(position));
  if (bits[channel][nearest] != wanted) {
    const int exact = byte_of(wanted, channel);
    return static_cast<std::uint8_t>(exact >= 0 ? static_cast<std::size_t>(exact) : nearest);
  }
  while (nearest > 0 && bits[channel][nearest - 1] == wanted) --nearest;
  return static_cast<std::uint8_t>(nearest);
}

}  // namespace shard
