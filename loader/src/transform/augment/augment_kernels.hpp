// The inner loops of the host's augmentation, compiled for several instruction sets and chosen at run time:
// plain loops over the functions of pixel_math.hpp, which compilers turn into vectors, and written ones
// where they do not (hue).
#pragma once

#include <cstddef>
#include <cstdint>

namespace shard::augment {

// Pixels are interleaved. `n` counts pixels, or values where it says so.
struct AugmentKernels {
  void (*saturation)(std::uint8_t* rgb, std::size_t n, float factor, float rest);
  void (*hue)(std::uint8_t* rgb, std::size_t n, float shift);
  void (*grayscale)(std::uint8_t* rgb, std::size_t n);
  std::uint64_t (*gray_sum)(const std::uint8_t* rgb, std::size_t n);
  // n values, each by the one table.
  void (*table)(std::uint8_t* values, std::size_t n, const std::uint8_t* table);
  // The inner n values of a row, between the rows above and below, `channels` apart;
  // values before and after are readable.
  void (*sharpen)(const std::uint8_t* above, const std::uint8_t* row, const std::uint8_t* below,
                  std::size_t n, std::uint32_t channels, float rest, std::uint8_t* out);
  // sum = weight * row, or sum += weight * row, of n values.
  void (*weigh)(const std::uint8_t* row, std::size_t n, float weight, bool add, float* sum);
  // n values: out[i] = weighted sum of row[i + k * channels], k = 0 to 2 * radius,
  // with weights[|k - radius|].
  void (*blur_row)(const float* row, std::size_t n, std::uint32_t channels, const float* weights,
                   std::uint32_t radius, std::uint8_t* out);
  // sum -> bytes, cut off.
  void (*cut)(const float* sum, std::size_t n, std::uint8_t* out);
  // Places of the n pixels of row y, from column 0. `real` of the instruction.
  void (*affine_row)(const float* matrix, std::int32_t y, std::int32_t width, std::int32_t height, float* x,
                     float* places_y);
};
AugmentKernels augment_kernels();

}  // namespace shard::augment
