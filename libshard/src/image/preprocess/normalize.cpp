#include "image/preprocess/normalize.hpp"

#include <cstring>

namespace shard::image {
namespace {

// Element (pixel x, channel c) goes to x * pixel_step + c * channel_step.
template <class Element>
void look_up(const std::uint8_t* rgb, std::size_t width, const ValueTable& table, std::byte* out,
             std::size_t pixel_step, std::size_t channel_step) {
  for (std::size_t channel = 0; channel < 3; ++channel) {
    std::byte* to = out + channel * channel_step * sizeof(Element);
    const ValueTable::Channel& of_channel = table.bits[channel];
    for (std::size_t x = 0; x < width; ++x, to += pixel_step * sizeof(Element)) {
      const auto element = static_cast<Element>(of_channel[rgb[3 * x + channel]]);
      std::memcpy(to, &element, sizeof element);
    }
  }
}

}  // namespace

RowWriter::RowWriter(DType dtype, Layout layout, const Normalization& normalization, Size size)
    : dtype_(dtype),
      layout_(layout),
      normalization_(normalization),
      size_(size),
      table_(dtype, normalization, 3),
      use_kernel_(kernel_is_exact()) {}

// Whether the vector code gives the table's bits for every byte of every channel.
bool RowWriter::kernel_is_exact() const {
  if (kernels_.planes_float == nullptr || dtype_ == DType::u8) return false;
  std::array<std::uint8_t, 3 * 256> gray{};
  for (std::size_t i = 0; i < gray.size(); ++i) gray[i] = static_cast<std::uint8_t>(i / 3);
  std::array<std::array<std::byte, 4 * 256>, 3> planes{};
  kernels_.planes_float(gray.data(), 256, dtype_, normalization_,
                        {planes[0].data(), planes[1].data(), planes[2].data()});
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, planes[channel].data() + byte * size_bytes(dtype_), size_bytes(dtype_));
      if (bits != table_.bits[channel][byte]) return false;
    }
  }
  return true;
}

void RowWriter::write(const std::uint8_t* rgb, std::uint32_t y, std::byte* sample) const {
  const std::size_t width = size_.width;
  const std::size_t element_bytes = size_bytes(dtype_);
  const bool planar = layout_ == Layout::nchw;
  const std::size_t pixel_step = planar ? 1 : 3;
  const std::size_t channel_step = planar ? width * size_.height : 1;
  std::byte* const out = sample + y * width * pixel_step * element_bytes;
  const std::array<std::byte*, 3> planes{out, out + channel_step * element_bytes,
                                         out + 2 * channel_step * element_bytes};
  if (dtype_ == DType::u8) {
    if (planar) {
      kernels_.planes_u8(rgb, width, planes);
    } else {
      std::memcpy(out, rgb, width * 3);
    }
  } else if (planar && use_kernel_) {
    kernels_.planes_float(rgb, width, dtype_, normalization_, planes);
  } else if (dtype_ == DType::f32) {
    look_up<std::uint32_t>(rgb, width, table_, out, pixel_step, channel_step);
  } else {
    look_up<std::uint16_t>(rgb, width, table_, out, pixel_step, channel_step);
  }
}

}  // namespace shard::image
