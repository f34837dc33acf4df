// Built without contraction of floating-point expressions (see CMakeLists.txt): each step rounds to float32.
#include "image/normalize.hpp"

#include <cstring>

namespace shard::image {
namespace {

// Element (pixel x, channel c) goes to x * pixel_step + c * channel_step.
template <class Element, class Table>
void look_up(const std::uint8_t* rgb, std::size_t width, const Table& table, std::byte* out,
             std::size_t pixel_step, std::size_t channel_step) {
  for (std::size_t channel = 0; channel < 3; ++channel) {
    std::byte* to = out + channel * channel_step * sizeof(Element);
    const auto& of_channel = table[channel];
    for (std::size_t x = 0; x < width; ++x, to += pixel_step * sizeof(Element)) {
      const Element element = of_channel[rgb[3 * x + channel]];
      std::memcpy(to, &element, sizeof element);
    }
  }
}

}  // namespace

float normalized_value(std::uint8_t byte, float mean, float std) noexcept {
  const float scaled = static_cast<float>(byte) / 255.0F;
  const float centered = scaled - mean;
  return centered / std;
}

NormalizeTables make_tables(DType dtype, const Normalization& normalization) {
  NormalizeTables tables;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const float value = normalized_value(static_cast<std::uint8_t>(byte), normalization.mean[channel],
                                           normalization.std[channel]);
      tables.f32[channel][byte] = value;
      tables.half[channel][byte] = dtype == DType::bf16 ? f32_to_bf16(value) : f32_to_f16(value);
    }
  }
  return tables;
}

RowWriter::RowWriter(DType dtype, Layout layout, const Normalization& normalization, Size size)
    : dtype_(dtype), layout_(layout), size_(size), tables_(make_tables(dtype, normalization)) {}

void RowWriter::write(const std::uint8_t* rgb, std::uint32_t y, std::byte* sample) const {
  const std::size_t width = size_.width;
  const bool planar = layout_ == Layout::nchw;
  const std::size_t pixel_step = planar ? 1 : 3;
  const std::size_t channel_step = planar ? width * size_.height : 1;
  std::byte* const out = sample + y * width * pixel_step * size_bytes(dtype_);
  switch (dtype_) {
    case DType::f32:
      look_up<float>(rgb, width, tables_.f32, out, pixel_step, channel_step);
      return;
    case DType::f16:
    case DType::bf16:
      look_up<std::uint16_t>(rgb, width, tables_.half, out, pixel_step, channel_step);
      return;
    default:
      break;
  }
  if (!planar) {
    if (reinterpret_cast<const std::byte*>(rgb) != out) std::memcpy(out, rgb, width * 3);
    return;
  }
  for (std::size_t x = 0; x < width; ++x) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      out[channel * channel_step + x] = std::byte{rgb[3 * x + channel]};
    }
  }
}

}  // namespace shard::image
