// Four neighbouring pixels of two rows at a time, from the samples of the usual kinds of files: one plane as
// it is and two whose ways of upsampling are the same. The bytes are those of jpeg::upsampled().
#pragma once

#include "cuda/kernels/jpeg/common.cuh"
#include "jpeg/colour.hpp"
#include "jpeg/upsample.hpp"

namespace shard::gpu {

constexpr std::uint32_t kJpegRows = 2;

// Where the pixels are: x a multiple of 4, and rows 2 pair - 1 and 2 pair, of which one may not be wanted.
struct QuadPlace {
  std::uint32_t x;
  std::uint32_t pair;
  std::uint32_t first_row;  // of those that are wanted: 0 or 1
  std::uint32_t end_row;    // 1 or 2

  __device__ std::uint32_t y(std::uint32_t row) const { return 2 * pair + row - 1; }
  // The same, but of one that is wanted.
  __device__ std::uint32_t some_y(std::uint32_t row) const {
    return y(row < first_row ? first_row : row < end_row ? row : end_row - 1);
  }
  // The rows of samples between which they lie.
  __device__ std::uint32_t above() const { return pair == 0 ? 0 : pair - 1; }
};

// The values of a component, of each row.
struct Quads {
  std::int32_t row[kJpegRows][kJpegQuad];
};

struct PlaneView {
  const JpegPlane& plane;
  const std::uint8_t* data;

  __device__ PlaneView(const JpegPlane& of, const std::uint8_t* samples)
      : plane(of), data(samples + of.begin) {}
  __device__ const std::uint8_t* at(std::uint32_t x, std::uint32_t y) const {
    return data + std::size_t{y - plane.top} * plane.stride + (x - plane.left);
  }
  __device__ std::uint32_t last_column() const { return plane.last_column; }
  __device__ std::uint32_t last_row() const { return plane.last_row; }
};

__device__ inline std::uint32_t load_word(const std::uint8_t* at) {
  return *reinterpret_cast<const std::uint32_t*>(at);
}

__device__ inline std::int32_t byte_of_word(std::uint32_t word, std::uint32_t i) {
  return static_cast<std::int32_t>(word >> (8 * i) & 0xFFU);
}

// Samples x / 2 - 1 to x / 2 + 2 of a row, those beyond the edge as at the edge. May read three bytes beyond
// the plane.
__device__ inline void four_samples(const PlaneView& plane, std::uint32_t middle, std::uint32_t row,
                                    std::int32_t* out) {
  const std::uint8_t* const at = plane.at(middle, row);
  const std::uint32_t pair = *reinterpret_cast<const std::uint16_t*>(at);
  const std::int32_t before = at[-1];
  const std::int32_t behind = at[2];
  out[1] = static_cast<std::int32_t>(pair & 0xFFU);
  out[0] = middle == 0 ? out[1] : before;
  out[2] = middle < plane.last_column() ? static_cast<std::int32_t>(pair >> 8) : out[1];
  out[3] = middle + 1 < plane.last_column() ? behind : out[2];
}

__device__ inline void both_quads(const PlaneView& plane, const QuadPlace& place, Quads& out) {
  std::int32_t near[2][4];
  four_samples(plane, place.x / 2, place.above(), near[0]);
  four_samples(plane, place.x / 2, min(place.pair, plane.last_row()), near[1]);
#pragma unroll
  for (std::uint32_t row = 0; row < kJpegRows; ++row) {
    std::int32_t sum[4];
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) sum[i] = 3 * near[row][i] + near[1 - row][i];
    out.row[row][0] = (3 * sum[1] + sum[0] + 8) >> 4;
    out.row[row][1] = (3 * sum[1] + sum[2] + 7) >> 4;
    out.row[row][2] = (3 * sum[2] + sum[1] + 8) >> 4;
    out.row[row][3] = (3 * sum[2] + sum[3] + 7) >> 4;
  }
}

__device__ inline void across_quads(const PlaneView& plane, const QuadPlace& place, Quads& out) {
#pragma unroll
  for (std::uint32_t row = 0; row < kJpegRows; ++row) {
    std::int32_t near[4];
    four_samples(plane, place.x / 2, place.some_y(row), near);
    out.row[row][0] = (3 * near[1] + near[0] + 1) >> 2;
    out.row[row][1] = (3 * near[1] + near[2] + 2) >> 2;
    out.row[row][2] = (3 * near[2] + near[1] + 1) >> 2;
    out.row[row][3] = (3 * near[2] + near[3] + 2) >> 2;
  }
}

__device__ inline void down_quads(const PlaneView& plane, const QuadPlace& place, Quads& out) {
  const std::uint32_t words[2] = {load_word(plane.at(place.x, place.above())),
                                  load_word(plane.at(place.x, min(place.pair, plane.last_row())))};
#pragma unroll
  for (std::uint32_t row = 0; row < kJpegRows; ++row)
#pragma unroll
    for (std::uint32_t i = 0; i < kJpegQuad; ++i) {
      const std::int32_t sum = 3 * byte_of_word(words[row], i) + byte_of_word(words[1 - row], i);
      out.row[row][i] = (sum + (row == 0 ? 2 : 1)) >> 2;
    }
}

__device__ inline void whole_quads(const PlaneView& plane, const QuadPlace& place, Quads& out) {
#pragma unroll
  for (std::uint32_t row = 0; row < kJpegRows; ++row) {
    const std::uint32_t word = load_word(plane.at(place.x, place.some_y(row)));
#pragma unroll
    for (std::uint32_t i = 0; i < kJpegQuad; ++i) out.row[row][i] = byte_of_word(word, i);
  }
}

template <jpeg::Upsampling kWay>
__device__ void upsample_quads(const PlaneView& plane, const QuadPlace& place, Quads& out) {
  if constexpr (kWay == jpeg::Upsampling::both)
    both_quads(plane, place, out);
  else if constexpr (kWay == jpeg::Upsampling::across)
    across_quads(plane, place, out);
  else if constexpr (kWay == jpeg::Upsampling::down)
    down_quads(plane, place, out);
  else
    whole_quads(plane, place, out);
}

// Bits 16 to 23 of four numbers as the bytes of a word.
__device__ inline std::uint32_t word_of(std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) {
  const auto bits = [](std::int32_t value) { return static_cast<std::uint32_t>(value); };
  return __byte_perm(__byte_perm(bits(a), bits(b), 0x0062), __byte_perm(bits(c), bits(d), 0x0062), 0x5410);
}

// Y, Cb, Cr with chroma upsampled one way -> R, G, B of four pixels as three words, of each row.
template <jpeg::Upsampling kWay>
__device__ void rgb_quads(const JpegPlane* planes, const std::uint8_t* samples, const QuadPlace& place,
                          std::uint32_t (&words)[kJpegRows][3]) {
  const PlaneView luma(planes[0], samples);
  Quads blue;
  Quads red;
  upsample_quads<kWay>(PlaneView(planes[1], samples), place, blue);
  upsample_quads<kWay>(PlaneView(planes[2], samples), place, red);
#pragma unroll
  for (std::uint32_t row = 0; row < kJpegRows; ++row) {
    const std::uint32_t word = load_word(luma.at(place.x, place.some_y(row)));
    jpeg::FixedRgb pixels[kJpegQuad];
#pragma unroll
    for (std::uint32_t i = 0; i < kJpegQuad; ++i) {
      const std::uint32_t y = __byte_perm(word, 0, 0x4044U | i << 8);  // byte i to bits 16 to 23
      pixels[i] = jpeg::ycc_to_fixed_rgb(static_cast<std::int32_t>(y), blue.row[row][i], red.row[row][i]);
    }
    words[row][0] = word_of(pixels[0].red, pixels[0].green, pixels[0].blue, pixels[1].red);
    words[row][1] = word_of(pixels[1].green, pixels[1].blue, pixels[2].red, pixels[2].green);
    words[row][2] = word_of(pixels[2].blue, pixels[3].red, pixels[3].green, pixels[3].blue);
  }
}

}  // namespace shard::gpu
