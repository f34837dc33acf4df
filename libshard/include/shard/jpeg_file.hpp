// What the head of a shard says of the JPEG in a frame of codec jpeg (docs/format.md): enough for its
// geometry and its size before the frame is read. Plain data that host and device share.
#pragma once

#include <cstdint>

#include "shard/host_device.hpp"

namespace shard::jpeg {

// A row of the tensor `jpeg_files`.
struct FrameFile {
  std::uint32_t bytes = 0;
  // Of component c: h in bits 8c to 8c + 3, v in bits 8c + 4 to 8c + 7; 0: there is no such component. A
  // component by itself has 1 and 1.
  std::uint32_t factors = 0;
  // Width | height << 16, before orientation.
  std::uint32_t size = 0;
  // EXIF, 1 to 8.
  std::uint32_t orientation = 1;

  SHARD_EXACT constexpr std::uint32_t width() const noexcept { return size & 0xFFFFU; }
  SHARD_EXACT constexpr std::uint32_t height() const noexcept { return size >> 16; }
  SHARD_EXACT constexpr bool transposed() const noexcept { return orientation >= 5; }
  // Columns and rows of the sample.
  SHARD_EXACT constexpr std::uint32_t upright_width() const noexcept {
    return transposed() ? height() : width();
  }
  SHARD_EXACT constexpr std::uint32_t upright_height() const noexcept {
    return transposed() ? width() : height();
  }
  // Blocks of an MCU, of component 0 to 3.
  SHARD_EXACT constexpr std::uint32_t h(std::uint32_t component) const noexcept {
    return factors >> (8 * component) & 15U;
  }
  SHARD_EXACT constexpr std::uint32_t v(std::uint32_t component) const noexcept {
    return factors >> (8 * component + 4) & 15U;
  }
  // 1, 3 or 4.
  SHARD_EXACT constexpr std::uint32_t components() const noexcept {
    std::uint32_t count = 0;
    while (count < 4 && h(count) != 0) ++count;
    return count;
  }
  bool operator==(const FrameFile&) const = default;
};

}  // namespace shard::jpeg
