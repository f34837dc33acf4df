#include "image/limits.hpp"

#include <fmt/format.h>

#include "shard/error.hpp"

namespace shard::image {

void check_pixel_bound(std::uint64_t width, std::uint64_t height, std::uint64_t max_pixels) {
  if (width == 0 || height == 0)
    throw Error(ErrorCode::corrupt, fmt::format("the image has no pixels: {} x {}", width, height));
  if (width > max_pixels / height)
    throw Error(ErrorCode::resource,
                fmt::format("{} x {} pixels exceed the bound of {}: raise max_pixels if the file is trusted",
                            width, height, max_pixels));
}

}  // namespace shard::image
