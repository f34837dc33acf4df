// Bytes of a resized row -> elements of a sample: normalise, cast, layout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "image/preprocess/normalize_kernels.hpp"
#include "shard/dataset_spec.hpp"
#include "shard/image/preprocess.hpp"
#include "shard/normalization.hpp"

namespace shard::image {

// Writes rows into samples. Const members may be called from several threads at once.
class RowWriter {
 public:
  RowWriter(DType dtype, Layout layout, const Normalization& normalization, Size size);
  // Of the samples from now on.
  void set_size(Size size) noexcept { size_ = size; }
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
  ValueTable table_;  // the definition; vector code must give the same
  NormalizeKernels kernels_ = normalize_kernels();
  bool use_kernel_ = false;  // for planes of floats
};

}  // namespace shard::image
