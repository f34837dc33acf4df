// The transform of samples that only version 2 of the profile has, on the calling thread: u16, more than four
// channels, tensors. The arithmetic is that of float_arithmetic.hpp, with u8 and u16 as values too. Also
// exact works of floats, whose arithmetic is that of exact/exact_filter.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/loader/transform.hpp"
#include "transform/exact/exact_floats.hpp"
#include "transform/float_kernels.hpp"

namespace shard {

// Everything one thread needs; reused from call to call. Under a DefaultFloatEnvironment.
//
// A sample is processed plane by plane if its channels are stored as planes, and otherwise row by row, so the
// memory is that of some rows, whatever the number of channels is.
class WideTransformer {
 public:
  // A work that check_work() accepts, and for whose stored samples is_wide() is true, or which is exact.
  void begin(const TransformWork& work);
  // Row `index` of the batch, with a crop that check_crop() accepts.
  void sample(std::size_t index);

 private:
  const std::byte* stored_at(std::size_t plane, std::size_t row, std::size_t column) const noexcept;
  std::byte* delivered_at(std::size_t channel, std::size_t row, std::size_t column) const noexcept;
  void copy(const SampleCrop& crop);
  void convert(const SampleCrop& crop);
  void resize(const SampleCrop& crop);
  void resize_exactly(std::size_t index);
  void finish_patches(std::size_t plane, std::uint32_t y, std::uint32_t width, std::uint64_t first,
                      const float* in);
  void resize_columns(const SampleCrop& crop, const float* stored, float* out) const;
  void place(std::size_t plane, std::size_t row, std::size_t column, const std::byte* in, std::size_t pixels);
  void finish(std::size_t plane, std::size_t row, std::size_t column, const float* in, std::size_t pixels);

  const TransformWork* work_ = nullptr;
  FloatKernels floats_{};
  std::uint32_t channels_ = 0;
  std::size_t planes_ = 0;            // that are processed one after the other
  std::uint32_t pixel_channels_ = 0;  // interleaved in a stored row
  bool planar_in_ = false;
  bool planar_out_ = false;
  bool converts_ = false;
  const std::byte* source_ = nullptr;
  std::byte* target_ = nullptr;

  FloatNormalization normalization_;  // of the plane, or of interleaved channels
  FloatColumns columns_;
  FloatTaps column_taps_;  // pixels of many channels
  FloatTaps rows_;
  std::vector<float> stored_;
  std::vector<float> ring_;
  std::vector<float> finished_;
  std::vector<std::byte> cast_;
  ExactFloats exact_;
};

}  // namespace shard
