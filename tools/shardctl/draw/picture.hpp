// A picture in memory, and how it becomes small enough to be looked at.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/dataset_spec.hpp"
#include "shard/image/preprocess.hpp"
#include "shardctl/draw/font.hpp"

namespace shard::ctl {

// u8 RGB [row, column, 3].
struct Picture {
  std::vector<std::uint8_t> rgb;
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  // Gets the rows and columns of a sample. The pixels are then any.
  void resize(const SampleSpec& sample);
  Canvas canvas() noexcept { return {rgb, width, height}; }
  image::RgbView view() const noexcept { return {rgb.data(), width, height, std::size_t{width} * 3}; }
};

// The longer side of a picture that is looked at has by default at most this many pixels.
inline constexpr std::uint32_t kMostPictureSide = 512;
// What becomes of a picture of this size if its longer side may have `most_side` pixels.
image::Size picture_size(image::Size size, std::uint32_t most_side = kMostPictureSide);
// How many times as thick lines must be, to be seen after that.
std::uint32_t line_scale(image::Size size);

// Makes large pictures smaller, with their aspect ratio. Keeps tables and buffers for reuse. Use one per
// thread.
class PictureShrinker {
 public:
  explicit PictureShrinker(std::uint32_t most_side = kMostPictureSide);
  // Has picture_size(). Valid until the next call, and as long as `picture` is unchanged.
  image::RgbView shrink(const Picture& picture);

 private:
  std::uint32_t most_side_;
  image::Preprocessor preprocessor_;
};

}  // namespace shard::ctl
