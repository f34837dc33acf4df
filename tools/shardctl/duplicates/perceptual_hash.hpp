// A 64-bit hash of how a picture looks: pictures that look alike differ in few bits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "shard/image/decode.hpp"
#include "shard/image/preprocess.hpp"

namespace shard::ctl {

// The DCT hash of pHash (Zauner: Implementation and benchmarking of perceptual image hash functions, 2010):
// the luma of the picture, averaged to 32x32, is transformed by a cosine transform, and each of the 64 lowest
// frequencies but the mean gives a bit, which says whether its coefficient is above their median. Size,
// aspect ratio, brightness, contrast and colour change few bits; mirroring and strong cropping change many.
//
// Keeps tables and buffers for reuse. Use one per thread.
class PerceptualHasher {
 public:
  PerceptualHasher();
  // Nothing for a picture of almost one colour (its luma deviates by less than 2 of 255 levels): what it
  // looks like is noise then. `picture` has at most 65535 rows and columns.
  std::optional<std::uint64_t> hash(const image::RgbView& picture);

 private:
  static constexpr std::size_t kSide = 32;
  static constexpr std::size_t kFrequencies = 11;  // of each axis: the 64 lowest are below the 11th diagonal
  image::Preprocessor shrink_;
  std::array<std::array<float, kSide>, kFrequencies> cosine_{};
};

}  // namespace shard::ctl
