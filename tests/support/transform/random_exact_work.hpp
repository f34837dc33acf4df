// TransformWorks of samples of any size, of every dtype and number of channels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "support/transform/random_work.hpp"

namespace shard::testing {

// Samples of up to `largest` rows and columns, resized to anything up to twice the view, and placed.
// `special`: NaN and infinities among floats.
inline RandomWork random_exact_work(Random& random, std::uint32_t largest, bool special = true) {
  RandomWork work;
  SampleSpec& stored = work.stored;
  stored.dtype = random.one_of({DType::u8, DType::u16, DType::f16, DType::bf16, DType::f32});
  stored.layout = random.one_of({Layout::nchw, Layout::nhwc});
  stored.channels = random.one_of({1U, 2U, 3U, 4U, 5U, 9U});
  stored.height = stored.width = 0;
  const bool whole = stored.dtype == DType::u8 || stored.dtype == DType::u16;
  work.delivered = stored.sized(1, 1);
  work.delivered.layout = random.one_of({Layout::nchw, Layout::nhwc});
  if (random.coin()) work.delivered.dtype = random.one_of({DType::f16, DType::bf16, DType::f32});
  work.delivered.height = random.between(1, std::min(largest, 80U));
  work.delivered.width = random.between(1, std::min(largest, 80U));
  work.normalize = random.coin() && (!whole || work.delivered.dtype != stored.dtype);
  work.normalization = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  work.filter = random.one_of(
      {ResizeFilter::bilinear, ResizeFilter::bicubic, ResizeFilter::box, ResizeFilter::lanczos});
  work.fill = static_cast<std::uint8_t>(random.between(0, 255));
  for (std::uint32_t i = random.between(1, 4); i > 0; --i) {
    const SampleSpec sized = stored.sized(random.between(1, largest), random.between(1, largest));
    work.sizes.push_back({sized.height, sized.width});
    work.samples.emplace_back(sized.size_bytes());
    random.fill(work.samples.back());
    if (!whole) fill_floats(random, stored.dtype, special && random.coin(), work.samples.back());
    SampleCrop crop =
        random_crop(random, sized, random.between(1, sized.height), random.between(1, sized.width));
    const auto offset = [&](std::uint32_t side) {
      return static_cast<std::int32_t>(random.between(0, 2 * side)) - static_cast<std::int32_t>(side);
    };
    const auto resized = [&](std::uint32_t box, std::uint32_t view) {
      return random.between(0, 3) == 0 ? box : random.between((box + 255) / 256, 2 * view + box / 256);
    };
    crop.resized_height = resized(crop.height, work.delivered.height);
    crop.resized_width = resized(crop.width, work.delivered.width);
    if (random.coin()) crop.row = offset(work.delivered.height);
    if (random.coin()) crop.column = offset(work.delivered.width);
    work.crops.push_back(crop);
  }
  for (const auto& sample : work.samples) work.sources.push_back(sample.data());
  return work;
}

}  // namespace shard::testing
