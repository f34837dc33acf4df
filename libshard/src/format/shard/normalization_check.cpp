#include "format/shard/normalization_check.hpp"

#include <fmt/core.h>

#include <cmath>
#include <cstddef>

namespace shard {
namespace {

// No mean of values from 0 to 1 lies beyond, and no deviation comes near:
// both leave room for scales of one's own.
constexpr float kMostMean = 1.0F;
constexpr float kMostStd = 10.0F;

}  // namespace

std::string scale_mistake(const Normalization& normalization) {
  for (std::size_t c = 0; c < normalization.mean.size() && c < normalization.std.size(); ++c) {
    const float mean = normalization.mean[c];
    const float std = normalization.std[c];
    if (std::abs(mean) > kMostMean || std::abs(std) > kMostStd)
      return fmt::format(
          "mean {} and std {} in channel {}: values are 0 to 1 before they are normalised, so a mean is at "
          "most {} and a "
          "std at most {}: divide those of bytes by 255",
          mean, std, c, kMostMean, kMostStd);
  }
  return {};
}

}  // namespace shard
