// How many of the images a conversion would enlarge: pixels that no camera has seen,
// and many times the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "convert/plan/plan.hpp"

namespace shard::convert {

struct SmallImages {
  // Images whose sizes were looked at, evenly spaced, and those of them that do not cover the size to
  // which they are resized.
  std::uint64_t sampled = 0;
  std::uint64_t smaller = 0;
  // The size of all that were looked at, if they have one and do not `differ`.
  std::optional<image::Size> one_size;
  bool differ = false;
  bool many() const noexcept { return smaller * 10 >= sampled && smaller > 0; }
  void add(image::Size size, const image::PreprocessOptions& preprocess);
};

// Of up to 64 images, within a second, 64 MiB and the files of at most 8 MiB; of those on servers none.
SmallImages look_for_small_images(const Plan& plan, const Options& options);

// "100 % of the images are smaller than 256x256 and would be enlarged ...", and what to do. `done`: "were".
std::string enlargement_text(const SmallImages& found, const image::PreprocessOptions& preprocess,
                             bool done = false);

}  // namespace shard::convert
