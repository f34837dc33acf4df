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

// What `options.resize` makes of a whole sample.
SampleSize resized_size(const SampleSpec& stored, const TransformOptions& options) {
  const std::uint64_t height = stored.height;
  const std::uint64_t width = stored.width;
  const std::uint64_t to = options.resize_height;
  const auto other = [to](std::uint64_t side, std::uint64_t of) {
    return std::max(static_cast<std::uint32_t>(to * side / of), 1U);
  };
  switch (options.resize) {
    case ResizeKind::shortest:
      if (height <= width) return {options.resize_height, other(width, height)};
      return {other(height, width), options.resize_height};
    case ResizeKind::longest:
      if (height >= width) return {options.resize_height, other(width, height)};
      return {other(height, width), options.resize_height};
    case ResizeKind::squash:
      return {options.resize_height, options.resize_width};
    case ResizeKind::letterbox: {
      // The side that limits becomes exactly what it may be.
      const bool by_height = height * options.resize_width >= width * options.resize_height;
      const double ratio = by_height ? static_cast<double>(options.resize_height) / stored.height
                                     : static_cast<double>(options.resize_width) / stored.width;
      if (by_height) return {options.resize_height, std::max(round_even(stored.width * ratio), 1U)};
      return {std::max(round_even(stored.height * ratio), 1U), options.resize_width};
    }
    case ResizeKind::cover: {
      // The side that limits becomes exactly what it must be.
      const bool by_height = width * options.resize_height >= height * options.resize_width;
      const double ratio = by_height ? static_cast<double>(options.resize_height) / stored.height
                                     : static_cast<double>(options.resize_width) / stored.width;
      if (by_height)
        return {options.resize_height, std::max(round_even(stored.width * ratio), options.resize_width)};
      return {std::max(round_even(stored.height * ratio), options.resize_height), options.resize_width};
    }
    case ResizeKind::none:
      break;
  }
  return {stored.height, stored.width};
}

// Where a view of `view` rows or columns begins in what has `size` of them: the middle, or drawn. Negative:
// the view is larger, and what it shows lies in its middle.
std::int32_t begin_of(std::uint32_t size, std::uint32_t view, SampleRandom* random) {
  if (view > size) return -static_cast<std::int32_t>((view - size) / 2);
  if (random != nullptr) return static_cast<std::int32_t>(random->below(size - view + 1));
  return static_cast<std::int32_t>(round_even((size - view) / 2.0));
}

// The whole sample resized, and a view of that.
SampleCrop resized_view(const SampleSpec& stored, const TransformOptions& options, SampleRandom& random) {
  SampleCrop crop{0, 0, stored.width, stored.height, false};
  const SampleSize size = resized_size(stored, options);
  crop.resized_height = size.height;
  crop.resized_width = size.width;
  SampleSize view = size;
  if (options.resize == ResizeKind::letterbox || options.resize == ResizeKind::cover)
    view = {options.resize_height, options.resize_width};
  if (options.crop != CropKind::none) view = {options.crop_height, options.crop_width};
  SampleRandom* const drawn = options.crop == CropKind::random ? &random : nullptr;
  crop.row = -begin_of(size.height, view.height, drawn);
  crop.column = -begin_of(size.width, view.width, drawn);
  return crop;
}

}  // namespace

SampleSize patch_grid(const SampleSpec& stored, const TransformOptions& options) {
  const std::uint64_t height = stored.height;
  const std::uint64_t width = stored.width;
  const std::uint64_t most = options.max_tokens;
  // The most patches along one side whose scale, patches * patch / side, leaves room along the other.
  const auto along = [most](std::uint64_t side, std::uint64_t other) {
    std::uint64_t low = 0;
    std::uint64_t high = most;
    while (low < high) {
      const std::uint64_t middle = (low + high + 1) / 2;
      const std::uint64_t across = (other * middle + side - 1) / side;
      if (middle * across <= most)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  };
  const std::uint64_t rows = along(height, width);
  const std::uint64_t columns = along(width, height);
  // The larger of the scales rows / height and columns / width.
  if (rows * width >= columns * height && rows > 0)
    return {static_cast<std::uint32_t>(rows),
            static_cast<std::uint32_t>((width * rows + height - 1) / height)};
  return {static_cast<std::uint32_t>((height * columns + width - 1) / width),
          static_cast<std::uint32_t>(columns)};
}

SampleSize padded_size(const SampleSpec& stored, const TransformOptions& options) {
  return resized_size(stored, options);
}

void place_padded(SampleCrop& crop, std::uint32_t view_width) noexcept {
  if (crop.flip) crop.column = static_cast<std::int32_t>(view_width - crop.resized_width);
}

SampleCrop draw_crop(const SampleSpec& stored, const TransformOptions& options, std::uint64_t seed,
                     std::uint64_t epoch, std::uint64_t draw) {
  SampleRandom random(seed, epoch, draw);
  SampleCrop crop{0, 0, stored.width, stored.height, false};
  const std::uint32_t height = options.crop_height != 0 ? options.crop_height : stored.height;
  const std::uint32_t width = options.crop_width != 0 ? options.crop_width : stored.width;
  if (options.patch != 0) {
    const SampleSize grid = patch_grid(stored, options);
    crop.resized_height = grid.height * options.patch;
    crop.resized_width = grid.width * options.patch;
  } else if (options.crop == CropKind::random_resized) {
    crop = random_resized(stored, options, random);
  } else if (options.padded != 0 || options.resize != ResizeKind::none || height > stored.height ||
             width > stored.width) {
    crop = resized_view(stored, options, random);
  } else if (options.crop == CropKind::center) {
    crop = {round_even((stored.width - width) / 2.0), round_even((stored.height - height) / 2.0), width,
            height, false};
  } else if (options.crop == CropKind::random) {
    crop.top = random.below(stored.height - height + 1);
    crop.left = random.below(stored.width - width + 1);
    crop.width = width;
    crop.height = height;
  }
  crop.flip = options.flip > 0 && random.uniform() < options.flip;
  return crop;
}

}  // namespace shard
