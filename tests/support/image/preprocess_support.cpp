#include "support/image/preprocess_support.hpp"

#include <numbers>

namespace shard::testing {
namespace {

using image::Filter;

double filter_value(Filter filter, double x) {
  const auto sinc = [](double at) {
    return at == 0.0 ? 1.0 : std::sin(at * std::numbers::pi) / (at * std::numbers::pi);
  };
  const double distance = std::abs(x);
  switch (filter) {
    case Filter::box:
      return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    case Filter::bilinear:
      return distance < 1.0 ? 1.0 - distance : 0.0;
    case Filter::bicubic:
      if (distance < 1.0) return (1.5 * distance - 2.5) * distance * distance + 1;
      return distance < 2.0 ? (((distance - 5) * distance + 8) * distance - 4) * -0.5 : 0.0;
    case Filter::lanczos:
    case Filter::nearest:
      break;
  }
  return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

double support_of(Filter filter) {
  constexpr double kSupports[] = {0.5, 1.0, 2.0, 3.0};
  return kSupports[static_cast<int>(filter)];
}

struct Taps {
  int first = 0;
  std::vector<int> weights;
};

// One tap: where Pillow's Image.resize(size, NEAREST) finds the output.
std::vector<Taps> nearest_taps_of(int source, int resized) {
  const double scale = static_cast<double>(source) / resized;
  std::vector<Taps> all;
  double at = scale * 0.5;
  for (int output = 0; output < resized; ++output) {
    all.push_back({std::min(static_cast<int>(at), source - 1), {1 << 22}});
    at += scale;
  }
  return all;
}

std::vector<Taps> taps_of(int source, int resized, Filter filter) {
  if (filter == Filter::nearest) return nearest_taps_of(source, resized);
  const double scale = static_cast<double>(source) / resized;
  const double stretch = std::max(scale, 1.0);
  const double support = support_of(filter) * stretch;
  std::vector<Taps> all;
  for (int output = 0; output < resized; ++output) {
    const double center = (output + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int last = std::min(static_cast<int>(center + support + 0.5), source);
    std::vector<double> weights;
    double sum = 0.0;
    for (int i = 0; i < last - first; ++i) {
      weights.push_back(filter_value(filter, (i + first - center + 0.5) * (1.0 / stretch)));
      sum += weights.back();
    }
    Taps taps{first, {}};
    for (const double weight : weights) {
      const double fixed = (sum != 0.0 ? weight / sum : weight) * (1 << 22);
      taps.weights.push_back(static_cast<int>(fixed < 0 ? fixed - 0.5 : fixed + 0.5));
    }
    all.push_back(taps);
  }
  return all;
}

std::uint8_t weighted(const Taps& taps, const std::uint8_t* first, std::size_t step) {
  int sum = 1 << 21;
  for (std::size_t i = 0; i < taps.weights.size(); ++i) sum += first[i * step] * taps.weights[i];
  return static_cast<std::uint8_t>(std::clamp(sum >> 22, 0, 255));
}

}  // namespace

Pixels plain_resize_crop(const Pixels& source, image::Size resized, const image::Box& box, Filter filter) {
  const auto across = taps_of(static_cast<int>(source.width), static_cast<int>(resized.width), filter);
  const auto down = taps_of(static_cast<int>(source.height), static_cast<int>(resized.height), filter);
  Pixels narrow{resized.width, source.height, {}};
  for (std::size_t y = 0; y < source.height; ++y) {
    for (const Taps& taps : across) {
      for (std::size_t channel = 0; channel < 3; ++channel) {
        const std::size_t first = (y * source.width + static_cast<std::size_t>(taps.first)) * 3 + channel;
        narrow.rgb.push_back(weighted(taps, &source.rgb[first], 3));
      }
    }
  }
  Pixels out{box.width, box.height, {}};
  const std::size_t row_bytes = std::size_t{resized.width} * 3;
  for (std::size_t y = 0; y < box.height; ++y) {
    const Taps& taps = down[box.top + y];
    for (std::size_t column = box.left * 3; column < (box.left + box.width) * std::size_t{3}; ++column) {
      const std::size_t first = static_cast<std::size_t>(taps.first) * row_bytes + column;
      out.rgb.push_back(weighted(taps, &narrow.rgb[first], row_bytes));
    }
  }
  return out;
}

std::vector<std::uint8_t> read_npy(const std::filesystem::path& path) {
  const Bytes file = read_file(path);
  const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(file.at(i)); };
  const std::size_t begin = 10 + at(8) + 256 * at(9);  // format 1.0: magic, version, header length, header
  std::vector<std::uint8_t> values;
  for (std::size_t i = begin; i < file.size(); ++i) values.push_back(std::to_integer<std::uint8_t>(file[i]));
  return values;
}

}  // namespace shard::testing
