#include "shardctl/duplicates/perceptual_hash.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shard::ctl {
namespace {

constexpr std::size_t kBits = 64;
constexpr float kPlainDeviation = 2.0F;  // levels of 255

image::PreprocessOptions shrink_options(std::uint32_t side) {
  image::PreprocessOptions options;
  options.squash = image::Size{side, side};
  options.crop = std::nullopt;
  options.filter = image::Filter::box;
  options.dtype = DType::u8;
  options.layout = Layout::nhwc;
  return options;
}

// ITU-R BT.601.
float luma(const std::uint8_t* rgb) {
  return 0.299F * static_cast<float>(rgb[0]) + 0.587F * static_cast<float>(rgb[1]) +
         0.114F * static_cast<float>(rgb[2]);
}

}  // namespace

PerceptualHasher::PerceptualHasher() : shrink_(shrink_options(kSide)) {
  for (std::size_t k = 0; k < kFrequencies; ++k) {
    const double scale = std::sqrt((k == 0 ? 1.0 : 2.0) / static_cast<double>(kSide));
    for (std::size_t x = 0; x < kSide; ++x) {
      const double angle = std::numbers::pi * static_cast<double>((2 * x + 1) * k) / (2.0 * kSide);
      cosine_[k][x] = static_cast<float>(scale * std::cos(angle));
    }
  }
}

std::optional<std::uint64_t> PerceptualHasher::hash(const image::RgbView& picture) {
  const image::RgbView small = shrink_.resize_crop(picture);
  // [row][horizontal frequency]
  std::array<std::array<float, kFrequencies>, kSide> rows{};
  for (std::size_t y = 0; y < kSide; ++y) {
    std::array<float, kSide> line{};
    for (std::size_t x = 0; x < kSide; ++x) line[x] = luma(small.data + y * small.stride_bytes + x * 3);
    for (std::size_t k = 0; k < kFrequencies; ++k) {
      float sum = 0;
      for (std::size_t x = 0; x < kSide; ++x) sum += cosine_[k][x] * line[x];
      rows[y][k] = sum;
    }
  }
  // Diagonal by diagonal, lowest frequencies first.
  std::array<float, kBits> coefficients{};
  std::size_t count = 0;
  float energy = 0;
  for (std::size_t diagonal = 1; diagonal < kFrequencies; ++diagonal) {
    for (std::size_t v = 0; v <= diagonal && count < kBits; ++v) {
      float sum = 0;
      for (std::size_t y = 0; y < kSide; ++y) sum += cosine_[v][y] * rows[y][diagonal - v];
      coefficients[count++] = sum;
      energy += sum * sum;
    }
  }
  if (energy < kPlainDeviation * kPlainDeviation * static_cast<float>(kSide * kSide)) return std::nullopt;
  std::array<float, kBits> sorted = coefficients;
  std::nth_element(sorted.begin(), sorted.begin() + kBits / 2, sorted.end());
  const float upper = sorted[kBits / 2];  // 32 are at least as large
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < kBits; ++i) {
    // Each quarter gets every fourth frequency: group_by_hash() needs quarters that vary alike.
    if (coefficients[i] >= upper) hash |= std::uint64_t{1} << (i % 4 * 16 + i / 4);
  }
  return hash;
}

}  // namespace shard::ctl
