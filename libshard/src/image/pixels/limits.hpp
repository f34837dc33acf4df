// The bound on pixels, which is checked with the sizes in a header before anything is allocated.
#pragma once

#include <cstdint>

namespace shard::image {

// Errors: corrupt (an empty image), TooManyPixels (width x height > max_pixels).
void check_pixel_bound(std::uint64_t width, std::uint64_t height, std::uint64_t max_pixels);

// The most memory that decoding one image may take, given the bound on its pixels: 16 bytes per pixel and 64
// MiB. Only PNGs with rows of many million pixels of 16 bits per channel come near it. All other formats have
// lower limits.
std::uint64_t memory_bound(std::uint64_t max_pixels) noexcept;
// Error: resource.
void check_memory_bound(std::uint64_t size_bytes, std::uint64_t max_pixels);

}  // namespace shard::image
