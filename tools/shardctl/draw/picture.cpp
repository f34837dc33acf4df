#include "shardctl/draw/picture.hpp"

#include <algorithm>

namespace shard::ctl {
namespace {

image::PreprocessOptions picture_options(std::uint32_t most_side) {
  image::PreprocessOptions options;
  options.free_size = image::FreeSize{image::FreeSize::Bound::longest, most_side};
  options.crop = std::nullopt;
  return options;
}

}  // namespace

void Picture::resize(const SampleSpec& sample) {
  width = sample.width;
  height = sample.height;
  rgb.resize(std::size_t{width} * height * 3);
}

image::Size picture_size(image::Size size, std::uint32_t most_side) {
  return image::resized_size(size, picture_options(most_side));
}

std::uint32_t line_scale(image::Size size) {
  return (std::max(size.width, size.height) + kMostPictureSide - 1) / kMostPictureSide;
}

PictureShrinker::PictureShrinker(std::uint32_t most_side)
    : most_side_(most_side), preprocessor_(picture_options(most_side)) {}

image::RgbView PictureShrinker::shrink(const Picture& picture) {
  if (std::max(picture.width, picture.height) <= most_side_) return picture.view();
  return preprocessor_.resize_crop(picture.view());
}

}  // namespace shard::ctl
