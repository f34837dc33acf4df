// Wide images (shard/image/wide.hpp): turned upright, resized, and written as samples.
//
// A resize is the antialiased one of 8-bit images (filters, sizes and crop; Pillow's), but computed
// in float64: columns first, then rows, each output the sum of value x weight over its taps from left
// to right and from top to bottom, where the weights of an output are divided by their sum. It is
// rounded once, at the end:
//
//   to u8, u16      to the nearest whole number, halves up, and clamped; an 8-bit image that becomes u16 is
//                   multiplied by 257 first
//   to floats       integers are rounded as above, and become (value / 255 - mean) / std, or value / 65535,
//                   step by step in float32; floats stay what they are. Then rounded once to the dtype.
//                   A finite value that would become infinite is refused
//
// An axis whose size does not change is not resized, and weights of 0 take no part,
// so a NaN reaches only what is near it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "shard/image/preprocess.hpp"
#include "shard/image/wide.hpp"

namespace shard::image {

// Pixels of `pixel_bytes` bytes, width x height as stored, by EXIF's orientation.
void turn_wide_upright(std::vector<std::byte>& pixels, std::uint32_t width, std::uint32_t height,
                       std::size_t pixel_bytes, int orientation);

class WideWriter {
 public:
  explicit WideWriter(const PreprocessOptions& options);
  // `made`: what the sample is, the options' spec or, if that is free, of the size that they give the image.
  // Errors: unsupported, if dtype or channels of the image are not those of the samples (gray becomes three
  // channels; nothing else is converted), integers would lose bits, or a finite value would become infinite;
  // invalid_argument (sizes).
  void write(const WideView& image, const SampleSpec& made, std::span<std::byte> sample);

 private:
  struct Axis {
    struct Taps {
      std::uint32_t first = 0;
      std::uint32_t count = 0;
      std::size_t weights = 0;
    };
    std::vector<Taps> taps;
    std::vector<double> weights;
    std::uint32_t most = 1;
    void build(std::uint32_t source, std::uint32_t resized, std::uint32_t begin, std::uint32_t count,
               Filter filter);
  };
  void check(const WideView& image) const;
  void columns(const WideView& image, std::uint32_t row, double* out);
  // Nearest, of elements that are stored as they are.
  template <class Element>
  void pick(const WideView& image, std::span<std::byte> sample) const;
  // A finished value of an image of dtype `from`, as the sample has it.
  std::uint32_t bits_of(double value, DType from, std::size_t channel) const;
  void finish(const double* row, std::uint32_t y, const WideView& image, std::byte* sample) const;

  PreprocessOptions options_;
  SampleSpec spec_;
  Axis columns_;
  Axis rows_;
  std::vector<double> stored_;
  std::vector<double> ring_;
  std::vector<double> finished_;
};

}  // namespace shard::image
