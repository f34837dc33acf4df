// The inner loops of the host's transform of floats (float_arithmetic.hpp), with vectors for the CPU it runs
// on. u8 and u16 are loaded and stored too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/loader/transform.hpp"
#include "transform/float_arithmetic.hpp"

namespace shard {

// Rows of floats have room for a multiple of this many values, all of which kernels may read and write.
inline constexpr std::size_t kFloatRowMultiple = 64;
constexpr std::size_t float_row(std::size_t values) noexcept {
  return (values + kFloatRowMultiple - 1) / kFloatRowMultiple * kFloatRowMultiple;
}

// The taps of each output of a resized axis; weights[k * pitch + output], 0 where an output has no tap k.
struct FloatTaps {
  std::uint32_t max_taps = 0;
  std::size_t pitch = 0;
  std::vector<Taps> taps;
  std::vector<float> weights;

  // Reuses its memory.
  void build(std::uint32_t box, std::uint32_t out);
};

// Columns of `channels` interleaved values (1 for a plane): value j of a resized row sees the values
// at[j] + k * channels of the stored row with weights[k * pitch + j]. Only the first may not be 0.
struct FloatColumns {
  std::uint32_t channels = 1;
  std::uint32_t max_taps = 0;
  std::size_t pitch = 0;  // a multiple of kFloatRowMultiple
  std::vector<std::int32_t> at;
  std::vector<float> weights;

  void build(std::uint32_t box, std::uint32_t out, std::uint32_t interleaved, bool flip);
  // Values of a stored row that a kernel may read: those of the box and zeros behind them.
  std::size_t row_values(std::uint32_t box) const noexcept {
    return float_row((std::size_t{box} + max_taps) * channels);
  }

 private:
  FloatTaps taps_;
};

// What becomes of the values of a row: value / divisor, then (value - mean) / std. mean and std lie lane by
// lane: those of one channel, or of interleaved channels in turn.
struct FloatNormalization {
  static constexpr std::size_t kLanes = 32;  // more than a vector has: so many lie behind the channels
  float divisor = 1;
  bool none = true;  // no mean and std
  std::uint32_t channels = 1;
  std::vector<float> mean;
  std::vector<float> std;

  // Of a work's channels [first, first + count). Reuses its memory.
  void set(const TransformWork& work, std::uint32_t first, std::uint32_t count);
};

struct FloatKernels {
  // n stored values -> floats, of which up to the next multiple of kFloatRowMultiple are written.
  void (*load)(DType stored, const std::byte* in, std::size_t n, float* out);
  // A row of stored values -> a resized row of columns.pitch values.
  void (*columns)(const FloatColumns& columns, const float* row, float* out);
  // Weighted sum of `taps` rows, n values of each rounded up to a multiple of kFloatRowMultiple.
  void (*rows)(const float* const* rows, const float* weights, std::size_t taps, std::size_t n, float* out);
  // n floats -> delivered values, normalised first. u8 and u16: rounded to nearest, ties to even,
  // and clamped; not for NaN.
  void (*store)(DType delivered, const FloatNormalization& normalization, const float* in, std::size_t n,
                std::byte* out);
};

FloatKernels float_kernels();

}  // namespace shard
