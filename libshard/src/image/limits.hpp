// The bound on pixels, held against what a header says before anything is allocated.
#pragma once

#include <cstdint>

namespace shard::image {

// Errors: corrupt (an empty image), resource (width x height > max_pixels).
void check_pixel_bound(std::uint64_t width, std::uint64_t height, std::uint64_t max_pixels);

}  // namespace shard::image
