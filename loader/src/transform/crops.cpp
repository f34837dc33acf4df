// The crop of each sample, drawn from seed, epoch and sample.
#include <algorithm>
#include <cmath>

#include "shard/loader/transform.hpp"
#include "transform/philox.hpp"

namespace shard {

namespace {

// Python's round: half to even. Values here are not negative; extreme ratios are cut off far beyond any
// sample's size.
std::uint32_t round_even(double value) noexcept {
  return static_cast<std::uint32_t>(std::nearbyint(std::min(value, 2147483647.0)));
}

SampleCrop random_resized(const SampleSpec& stored, const TransformOptions& options, SampleRandom& random) {
  const double height = stored.height;
  const double width = stored.width;
  const double log_low = std::log(options.ratio[0]);
  const double log_high = std::log(options.ratio[1]);
  SampleCrop crop;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area =
        height * width * (options.scale[0] + (options.scale[1] - options.scale[0]) * random.uniform());
    const double ratio = std::exp(log_low + (log_high - log_low) * random.uniform());
    crop.width = round_even(std::sqrt(area * ratio));
    crop.height = round_even(std::sqrt(area / ratio));
    if (crop.width > 0 && crop.width <= stored.width && crop.height > 0 && crop.height <= stored.height) {
      crop.top = random.below(stored.height - crop.height + 1);
      crop.left = random.below(stored.width - crop.width + 1);
      return crop;
    }
  }
  const double ratio = width / height;
  crop.width = stored.width;
  crop.height = stored.height;
  if (ratio < options.ratio[0])
    crop.height = std::clamp(round_even(width / options.ratio[0]), 1U, stored.height);
  else if (ratio > options.ratio[1])
    crop.width = std::clamp(round_even(height * options.ratio[1]), 1U, stored.width);
  crop.top = (stored.height - crop.height) / 2;
  crop.left = (stored.width - crop.width) / 2;
  return crop;
}

}  // namespace

SampleCrop draw_crop(const SampleSpec& stored, const TransformOptions& options, std::uint64_t seed,
                     std::uint64_t epoch, std::uint64_t draw) {
  SampleRandom random(seed, epoch, draw);
  SampleCrop crop{0, 0, stored.width, stored.height, false};
  const std::uint32_t height = options.crop_height != 0 ? options.crop_height : stored.height;
  const std::uint32_t width = options.crop_width != 0 ? options.crop_width : stored.width;
  switch (options.crop) {
    case CropKind::none:
      break;
    case CropKind::center:
      crop = {round_even((stored.width - width) / 2.0), round_even((stored.height - height) / 2.0), width,
              height, false};
      break;
    case CropKind::random:
      crop.top = random.below(stored.height - height + 1);
      crop.left = random.below(stored.width - width + 1);
      crop.width = width;
      crop.height = height;
      break;
    case CropKind::random_resized:
      crop = random_resized(stored, options, random);
      break;
  }
  crop.flip = options.flip_probability > 0 && random.uniform() < options.flip_probability;
  return crop;
}

}  // namespace shard
