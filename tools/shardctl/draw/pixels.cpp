#include "shardctl/draw/pixels.hpp"

#include <algorithm>
#include <cmath>

#include "shard/dtype.hpp"
#include "shard/error.hpp"

namespace shard::ctl {
namespace {

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
  if (spec.is_tensor())
    throw Error(ErrorCode::unsupported,
                "samples of layout tensor are not images: they have no pixels to show");
  if (spec.dtype == DType::u8 || spec.dtype == DType::u16) return;
  if (spec.channels > table_.size()) return;
  values_ = ValueTable(spec.dtype, normalization, spec.channels);
  if (size_bytes(spec.dtype) != 2) return;
  for (std::uint32_t channel = 0; channel < spec.channels; ++channel) {
    table_[channel].resize(65536);
    for (std::uint32_t bits = 0; bits < 65536; ++bits)
      table_[channel][bits] = values_.nearest_byte(bits, channel);
  }
}

std::uint8_t Denormalizer::value(std::span<const std::byte> sample, std::uint64_t element,
                                 std::uint32_t channel) const {
  switch (spec_.dtype) {
    case DType::u8:
      return std::to_integer<std::uint8_t>(sample[element]);
    case DType::u16:
      return static_cast<std::uint8_t>((load16(sample, element) + 128U) / 257U);
    case DType::f32:
      if (spec_.channels > table_.size()) return nearest_byte(load32(sample, element), channel);
      return values_.nearest_byte(load32(sample, element), channel);
    default:
      if (spec_.channels > table_.size()) return nearest_byte(load16(sample, element), channel);
      return table_[channel][load16(sample, element)];
  }
}

std::uint8_t Denormalizer::nearest_byte(std::uint32_t bits, std::uint32_t channel) const {
  const float byte = (value_of_bits(spec_.dtype, bits) * std_of(normalization_, channel) +
                      mean_of(normalization_, channel)) *
                     255.0F;
  return byte > 0.0F ? static_cast<std::uint8_t>(std::lround(std::min(byte, 255.0F)))
                     : std::uint8_t{0};  // NaN: 0
}

// visit(place in [row, column, channel], place in the sample, channel) for each element, until it returns
// false. Whether none did.
template <class Visit>
bool Denormalizer::each(std::uint64_t elements, const Visit& visit) const {
  const std::uint64_t pixels = elements / spec_.channels;
  const bool planes = spec_.layout == Layout::nchw;
  for (std::uint32_t channel = 0; channel < spec_.channels; ++channel) {
    for (std::uint64_t pixel = 0; pixel < pixels; ++pixel) {
      const std::uint64_t packed = pixel * spec_.channels + channel;
      if (!visit(packed, planes ? channel * pixels + pixel : packed, channel)) return false;
    }
  }
  return true;
}

void Denormalizer::bytes(std::span<const std::byte> sample, std::span<std::uint8_t> out) const {
  each(out.size(), [&](std::uint64_t to, std::uint64_t from, std::uint32_t channel) {
    out[to] = value(sample, from, channel);
    return true;
  });
}

bool Denormalizer::are_bytes(std::span<const std::byte> sample, std::span<const std::uint8_t> bytes) const {
  if (spec_.dtype == DType::u8) return true;
  if (spec_.dtype == DType::u16 || spec_.channels > table_.size()) return false;
  return each(bytes.size(), [&](std::uint64_t to, std::uint64_t from, std::uint32_t channel) {
    const std::uint32_t bits = spec_.dtype == DType::f32 ? load32(sample, from) : load16(sample, from);
    return values_.bits[channel][bytes[to]] == bits;
  });
}

double Denormalizer::exact_value(std::span<const std::byte> sample, std::uint64_t element,
                                 std::uint32_t channel) const {
  if (spec_.dtype == DType::u8) return std::to_integer<std::uint8_t>(sample[element]) / 255.0;
  if (spec_.dtype == DType::u16) return load16(sample, element) / 65535.0;
  const std::uint32_t bits = spec_.dtype == DType::f32 ? load32(sample, element) : load16(sample, element);
  return double{value_of_bits(spec_.dtype, bits)} * std_of(normalization_, channel) +
         mean_of(normalization_, channel);
}

void Denormalizer::values(std::span<const std::byte> sample, std::span<double> out) const {
  each(out.size(), [&](std::uint64_t to, std::uint64_t from, std::uint32_t channel) {
    out[to] = exact_value(sample, from, channel);
    return true;
  });
}

void Denormalizer::rgb(std::span<const std::byte> sample, std::span<std::uint8_t> out) const {
  if (spec_.channels == 3) return bytes(sample, out);
  const std::size_t pixels = out.size() / 3;
  std::vector<std::uint8_t> packed(pixels * spec_.channels);
  bytes(sample, packed);
  for (std::uint64_t pixel = 0; pixel < pixels; ++pixel) {
    for (std::uint64_t channel = 0; channel < 3; ++channel) {
      out[pixel * 3 + channel] = packed[pixel * spec_.channels + (spec_.channels < 3 ? 0 : channel)];
    }
  }
}

}  // namespace shard::ctl
