#include "image/pixels/limits.hpp"

#include <fmt/format.h>

#include "shard/image/decode.hpp"

namespace shard::image {

void check_pixel_bound(std::uint64_t width, std::uint64_t height, std::uint64_t max_pixels) {
  if (width == 0 || height == 0)
    throw Error(ErrorCode::corrupt, fmt::format("the image has no pixels: {} x {}", width, height));
  if (width > max_pixels / height)
    throw TooManyPixels(
        ErrorCode::resource,
        fmt::format("{} x {} pixels exceed the bound of {} pixels; if the file is trusted, raise the bound",
                    width, height, max_pixels));
}

std::uint64_t memory_bound(std::uint64_t max_pixels) noexcept {
  constexpr std::uint64_t kPixelBytes = 16;
  constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20;
  return max_pixels > (UINT64_MAX - kFreeBytes) / kPixelBytes ? UINT64_MAX
                                                              : max_pixels * kPixelBytes + kFreeBytes;
}

void check_memory_bound(std::uint64_t size_bytes, std::uint64_t max_pixels) {
  if (size_bytes <= memory_bound(max_pixels)) return;
  throw TooManyPixels(
      ErrorCode::resource,
      fmt::format("decoding takes {} bytes of memory, more than the bound of {} ({} pixels of 16 "
                  "bytes); if the file is trusted, raise the bound on pixels",
                  size_bytes, memory_bound(max_pixels), max_pixels));
}

}  // namespace shard::image
