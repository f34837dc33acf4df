// The transform of samples stored as floats, on the calling thread (float_arithmetic.hpp says the
// arithmetic).
#pragma once

#include <cfenv>
#include <cstddef>
#include <vector>

#include "shard/loader/transform.hpp"
#include "transform/float_kernels.hpp"
#include "transform/transform_kernels.hpp"

namespace shard {

// Rounding to nearest and subnormal numbers as IEEE 754 has them, whatever the program has chosen for its
// threads (PyTorch's set_flush_denormal, -ffast-math); restored at the end.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() noexcept {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&before_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t before_{};
};

// Everything one thread needs; reused from call to call. Under a DefaultFloatEnvironment.
class FloatTransformer {
 public:
  // A work that check_work() accepts, of samples stored as floats.
  void begin(const TransformWork& work);
  // Row `index` of the batch, with a crop that check_crop() accepts.
  void sample(std::size_t index);

 private:
  const std::byte* stored_row(std::size_t plane, std::size_t row, std::size_t column) const noexcept;
  void load_row(const SampleCrop& crop, std::size_t plane, std::size_t row, float* out) const;
  void copy(const SampleCrop& crop);
  void resize(const SampleCrop& crop);
  void finish_row(std::size_t y, const float* const* in);

  const TransformWork* work_ = nullptr;
  FloatKernels floats_{};
  TransformKernels elements_{};
  std::uint32_t channels_ = 0;
  std::size_t planes_in_ = 0;
  std::uint32_t pixel_channels_ = 0;  // interleaved in a stored row
  bool planar_in_ = false;
  bool planar_out_ = false;
  const std::byte* source_ = nullptr;
  std::byte* target_ = nullptr;

  std::array<FloatNormalization, 5> normalization_;  // of each channel, and of interleaved channels
  FloatColumns columns_;
  FloatTaps rows_;
  std::vector<float> stored_row_;
  std::vector<float> ring_;
  std::vector<float> finished_;  // rows of the box, resized and flipped
  std::vector<float> layout_;
};

}  // namespace shard
