#include "shardctl/pixels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "shard/dtype.hpp"

namespace shard::ctl {
namespace {

// Normalisation is of red, green and blue; a fourth channel is taken as it is.
float mean_of(const Normalization& n, std::uint32_t channel) { return channel < 3 ? n.mean[channel] : 0.0F; }
float std_of(const Normalization& n, std::uint32_t channel) { return channel < 3 ? n.std[channel] : 1.0F; }

std::uint32_t load16(std::span<const std::byte> bytes, std::uint64_t element) {
  return std::to_integer<std::uint32_t>(bytes[element * 2]) |
         std::to_integer<std::uint32_t>(bytes[element * 2 + 1]) << 8U;
}

std::uint32_t load32(std::span<const std::byte> bytes, std::uint64_t element) {
  return load16(bytes, element * 2) | load16(bytes, element * 2 + 1) << 16U;
}

}  // namespace

Denormalizer::Denormalizer(const SampleSpec& spec, const Normalization& normalization)
    : spec_(spec), normalization_(normalization) {
  if (spec.dtype != DType::f16 && spec.dtype != DType::bf16) return;
  const bool half = spec.dtype == DType::f16;
  for (std::uint32_t channel = 0; channel < spec.channels; ++channel) {
    std::vector<std::uint8_t>& table = table_[channel];
    table.resize(65536);
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const auto stored = static_cast<std::uint16_t>(bits);
      table[bits] = nearest(half ? f16_to_f32(stored) : bf16_to_f32(stored), channel);
    }
    for (int byte = 255; byte >= 0; --byte) {
      const float value = (static_cast<float>(byte) / 255.0F - mean_of(normalization, channel)) /
                          std_of(normalization, channel);
      table[half ? f32_to_f16(value) : f32_to_bf16(value)] = static_cast<std::uint8_t>(byte);
    }
  }
}

std::uint8_t Denormalizer::nearest(float stored, std::uint32_t channel) const {
  const double byte = (static_cast<double>(stored) * static_cast<double>(std_of(normalization_, channel)) +
                       static_cast<double>(mean_of(normalization_, channel))) *
                      255.0;
  if (!(byte > 0)) return 0;  // NaN too
  return byte >= 255 ? std::uint8_t{255} : static_cast<std::uint8_t>(std::lround(byte));
}

std::uint8_t Denormalizer::value(std::span<const std::byte> sample, std::uint64_t element,
                                 std::uint32_t channel) const {
  switch (spec_.dtype) {
    case DType::u8:
      return std::to_integer<std::uint8_t>(sample[element]);
    case DType::f32:
      return nearest(std::bit_cast<float>(load32(sample, element)), channel);
    default:
      return table_[channel][load16(sample, element)];
  }
}

void Denormalizer::bytes(std::span<const std::byte> sample, std::span<std::uint8_t> out) const {
  const std::uint64_t pixels = std::uint64_t{spec_.height} * spec_.width;
  const bool planes = spec_.layout == Layout::nchw;
  for (std::uint32_t channel = 0; channel < spec_.channels; ++channel) {
    for (std::uint64_t pixel = 0; pixel < pixels; ++pixel) {
      const std::uint64_t packed = pixel * spec_.channels + channel;
      out[packed] = value(sample, planes ? channel * pixels + pixel : packed, channel);
    }
  }
}

void Denormalizer::rgb(std::span<const std::byte> sample, std::span<std::uint8_t> out) const {
  if (spec_.channels == 3) return bytes(sample, out);
  std::vector<std::uint8_t> packed(spec_.elements());
  bytes(sample, packed);
  const std::uint64_t pixels = std::uint64_t{spec_.height} * spec_.width;
  for (std::uint64_t pixel = 0; pixel < pixels; ++pixel) {
    for (std::uint64_t channel = 0; channel < 3; ++channel) {
      out[pixel * 3 + channel] = packed[pixel * spec_.channels + (spec_.channels < 3 ? 0 : channel)];
    }
  }
}

}  // namespace shard::ctl
