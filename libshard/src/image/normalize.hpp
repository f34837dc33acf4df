// Bytes of a resized row -> elements of a sample: normalise, cast, layout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "image/normalize_kernels.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::image {

// (float(byte) / 255 - mean) / std, each step rounded to float32.
float normalized_value(std::uint8_t byte, float mean, float std) noexcept;

// Every value that a byte can become, [channel][byte]: the definition; vector code must give the same.
struct NormalizeTables {
  std::array<std::array<float, 256>, 3> f32{};
  std::array<std::array<std::uint16_t, 256>, 3> half{};  // f16 or bf16 bit patterns, as the dtype says
};
NormalizeTables make_tables(DType dtype, const Normalization& normalization);

// Writes rows into samples. Immutable after construction.
class RowWriter {
 public:
  RowWriter(DType dtype, Layout layout, const Normalization& normalization, Size size);
  // Row `y` of width x 3 bytes into the sample at `sample`.
  void write(const std::uint8_t* rgb, std::uint32_t y, std::byte* sample) const;
  // Whether planes of floats are computed by vectors rather than looked up; the bits are the same.
  bool uses_kernel() const noexcept { return use_kernel_; }

 private:
  bool kernel_is_exact() const;

  DType dtype_;
  Layout layout_;
  Normalization normalization_;
  Size size_;
  NormalizeTables tables_;
  NormalizeKernels kernels_ = normalize_kernels();
  bool use_kernel_ = false;  // for planes of floats
};

}  // namespace shard::image
