// Codec packed: frames of any coder, and the coders of a strip. The format is in shard/packed_format.hpp and
// in docs/format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shard/dtype.hpp"
#include "shard/packed_format.hpp"

namespace shard::packed {

// The pixels of one strip inside a sample; strides in bytes.
template <class Byte>
struct StripPixels {
  Byte* first = nullptr;  // row 0, first column of the strip, channel 0
  std::size_t row_stride = 0;
  std::size_t column_stride = 0;
  std::size_t channel_stride = 0;
  std::uint32_t channels = 0;
  std::uint32_t height = 0;
  std::uint32_t columns = 0;  // 1 to 32
};

// The coders of a strip. All of them give the same bytes.
struct Kernels {
  // Writes seeds, codes and bits to `out`; returns their length. There is room for max_strip_bytes().
  std::size_t (*encode_strip)(const StripPixels<const std::uint8_t>& pixels, std::uint8_t* out) = nullptr;
  // `strip` passed check_strip() and is followed by kSlack bytes that may be read.
  void (*decode_strip)(const std::uint8_t* strip, const StripPixels<std::uint8_t>& pixels) = nullptr;
};
inline constexpr std::size_t kSlack = 16;

Kernels scalar_kernels() noexcept;  // the reference: plain and short
Kernels best_kernels();             // chosen for this CPU

struct NamedKernels {
  std::string name;
  Kernels kernels;
};
// The reference and one for each instruction set of this build and CPU. For tests; not thread safe.
std::vector<NamedKernels> all_kernels();

std::size_t max_strip_bytes(const Shape& shape) noexcept;

// The frame of a sample; `pixels` has shape.pixels_bytes() bytes in `layout`. The frame does not depend on
// the layout. Its length is a multiple of 16.
std::vector<std::byte> encode(const Kernels& kernels, const Shape& shape, Layout layout,
                              std::span<const std::byte> pixels);

// Fills `pixels` (shape.pixels_bytes()) from a frame of this shape, which must end where its codes end.
// `frame` may be any bytes: if they are not such a frame, it throws corrupt with the reason. Reads nothing
// outside `frame`. If the bytes change meanwhile, the result is some sample or corrupt.
void decode(const Kernels& kernels, const Shape& shape, Layout layout, std::span<const std::byte> frame,
            std::span<std::byte> pixels);

// The shortest frame of a shape.
std::uint64_t least_frame_bytes(const Shape& shape) noexcept;

}  // namespace shard::packed
