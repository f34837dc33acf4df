// What a view of a sample of any dtype must be, in doubles by plain loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <optional>
#include <vector>

#include "shard/loader/transform.hpp"

namespace shard::testing {

// [channel][row][column] of a sample.
inline std::vector<double> planes_of(const SampleSpec& sized, const std::vector<std::byte>& sample) {
  std::vector<double> planes(sized.elements());
  for (std::uint64_t i = 0; i < planes.size(); ++i) {
    const std::uint64_t pixels = std::uint64_t{sized.height} * sized.width;
    const std::uint64_t at =
        sized.layout == Layout::nhwc ? i % sized.channels * pixels + i / sized.channels : i;
    if (sized.dtype == DType::u8) planes[at] = std::to_integer<int>(sample[i]);
    std::uint16_t two = 0;
    if (size_bytes(sized.dtype) == 2) std::memcpy(&two, &sample[2 * i], 2);
    if (sized.dtype == DType::u16) planes[at] = two;
    if (sized.dtype == DType::f16) planes[at] = f16_to_f32(two);
    if (sized.dtype == DType::bf16) planes[at] = bf16_to_f32(two);
    float four = 0;
    if (sized.dtype == DType::f32) {
      std::memcpy(&four, &sample[4 * i], 4);
      planes[at] = four;
    }
  }
  return planes;
}

// The weights of Pillow's filters, exactly enough.
inline std::vector<double> plain_axis(ResizeFilter filter, std::uint32_t box, std::uint32_t out,
                                      std::uint32_t x) {
  std::vector<double> weights(box);
  if (box == out) {
    weights[x] = 1;
    return weights;
  }
  const double scale = static_cast<double>(box) / out;
  const double shrink = std::max(scale, 1.0);
  const double center = (x + 0.5) * scale;
  const auto sinc = [](double at) {
    return at == 0 ? 1.0 : std::sin(at * std::numbers::pi) / (at * std::numbers::pi);
  };
  constexpr double kSupports[] = {1, 2, 0.5, 3};
  const double support = kSupports[static_cast<std::size_t>(filter)] * shrink;
  const auto first = static_cast<std::uint32_t>(std::max(static_cast<int>(center - support + 0.5), 0));
  const std::uint32_t end = std::min(static_cast<std::uint32_t>(center + support + 0.5), box);
  double sum = 0;
  for (std::uint32_t i = first; i < end; ++i) {
    const double at = (i - center + 0.5) / shrink;
    const double a = std::abs(at);
    double weight = 0;
    if (filter == ResizeFilter::bilinear) weight = a < 1 ? 1 - a : 0;
    if (filter == ResizeFilter::box) weight = at > -0.5 && at <= 0.5 ? 1 : 0;
    if (filter == ResizeFilter::lanczos) weight = a < 3 ? sinc(a) * sinc(a / 3) : 0;
    if (filter == ResizeFilter::bicubic)
      weight = a < 1 ? (1.5 * a - 2.5) * a * a + 1 : a < 2 ? (((a - 5) * a + 8) * a - 4) * -0.5 : 0;
    weights[i] = weight;
    sum += weight;
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// A view, [channel][row][column]. Nearest: torch's, else by the filter.
inline std::vector<double> plain_values(const SampleSpec& sized, const std::vector<std::byte>& sample,
                                        const SampleCrop& crop, std::uint32_t height, std::uint32_t width,
                                        std::optional<ResizeFilter> filter, double fill) {
  const std::uint32_t rows = crop.resized_height != 0 ? crop.resized_height : height;
  const std::uint32_t columns = crop.resized_width != 0 ? crop.resized_width : width;
  const std::vector<double> planes = planes_of(sized, sample);
  const auto weights_of = [&](std::uint32_t box, std::uint32_t out, std::uint32_t at) {
    if (filter) return plain_axis(*filter, box, out, at);
    std::vector<double> weights(box);
    const float scale = static_cast<float>(box) / static_cast<float>(out);
    weights[std::min(static_cast<std::uint32_t>(static_cast<float>(at) * scale), box - 1)] = 1;
    return weights;
  };
  // The column of the resized box that each column of the view shows, all rows of the box.
  std::vector<double> view(std::size_t{sized.channels} * height * width, fill);
  std::vector<double> across(std::size_t{sized.channels} * crop.height);
  std::vector<std::vector<double>> down(height);
  for (std::uint32_t y = 0; y < height; ++y)
    if (const std::int64_t row = std::int64_t{y} - crop.row; row >= 0 && row < rows)
      down[y] = weights_of(crop.height, rows, static_cast<std::uint32_t>(row));
  for (std::uint32_t x = 0; x < width; ++x) {
    const std::int64_t column = std::int64_t{crop.flip ? width - 1 - x : x} - crop.column;
    if (column < 0 || column >= columns) continue;
    const auto weights = weights_of(crop.width, columns, static_cast<std::uint32_t>(column));
    for (std::size_t line = 0; line < across.size(); ++line) {
      const std::size_t c = line / crop.height;
      const std::size_t i = line % crop.height;
      const double* const values = &planes[(c * sized.height + crop.top + i) * sized.width + crop.left];
      across[line] = 0;
      for (std::uint32_t j = 0; j < crop.width; ++j)
        if (weights[j] != 0) across[line] += weights[j] * values[j];
    }
    for (std::uint32_t y = 0; y < height; ++y) {
      if (down[y].empty()) continue;
      for (std::size_t c = 0; c < sized.channels; ++c) {
        double sum = 0;
        for (std::uint32_t i = 0; i < crop.height; ++i)
          if (down[y][i] != 0) sum += down[y][i] * across[c * crop.height + i];
        view[(c * height + y) * width + x] = sum;
      }
    }
  }
  return view;
}

}  // namespace shard::testing
