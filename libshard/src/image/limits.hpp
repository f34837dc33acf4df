// The bound on pixels, held against what a header says before anything is allocated.
#pragma once

#include <cstdint>

namespace shard::image {

// Errors: corrupt (an empty image), TooManyPixels (width x height > max_pixels).
void check_pixel_bound(std::uint64_t width, std::uint64_t height, std::uint64_t max_pixels);

// What decoding one image may take at most, given the bound on its pixels: 16 bytes for each and 64 MiB. Only
// PNGs with rows of many million pixels of 16 bits a channel come near; all else is less by its formats'
// limits.
std::uint64_t memory_bound(std::uint64_t max_pixels) noexcept;
// Error: resource.
void check_memory_bound(std::uint64_t size_bytes, std::uint64_t max_pixels);

}  // namespace shard::image
