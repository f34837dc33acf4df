// Built without contraction of floating-point expressions (see CMakeLists.txt): each step rounds.
#include "image/pixels/wide_pixels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "image/resample/filter_kernels.hpp"
#include "shard/normalization.hpp"

namespace shard::image {
namespace {

[[noreturn]] void unfit(const std::string& why) { throw Error(ErrorCode::unsupported, why); }

bool is_whole(DType dtype) { return dtype == DType::u8 || dtype == DType::u16; }

template <class T>
T element_at(const std::byte* data, std::size_t i) {
  T value{};
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

void load_values(DType dtype, const std::byte* data, std::size_t count, double* out) {
  switch (dtype) {
    case DType::u8:
      for (std::size_t i = 0; i < count; ++i) out[i] = std::to_integer<std::uint8_t>(data[i]);
      return;
    case DType::u16:
      for (std::size_t i = 0; i < count; ++i) out[i] = element_at<std::uint16_t>(data, i);
      return;
    case DType::f16:
      for (std::size_t i = 0; i < count; ++i)
        out[i] = static_cast<double>(f16_to_f32(element_at<std::uint16_t>(data, i)));
      return;
    default:
      for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<double>(element_at<float>(data, i));
  }
}

// The stored dtype cannot hold a finite value. Infinities and NaN of the file stay what they are.
[[noreturn]] void refuse_overflow(DType dtype, double value, std::uint32_t row, std::size_t column) {
  unfit(fmt::format(
      "the value {} at row {}, column {} of its sample is too large for dtype {}: {}", value, row, column,
      to_string(dtype),
      std::isfinite(static_cast<float>(value)) ? "dtype f32 keeps it" : "scale the values first"));
}

double rounded_whole(double value, double most) { return std::clamp(std::floor(value + 0.5), 0.0, most); }

}  // namespace

void turn_wide_upright(std::vector<std::byte>& pixels, std::uint32_t width, std::uint32_t height,
                       std::size_t pixel_bytes, int orientation) {
  if (orientation < 2 || orientation > 8) return;
  const bool swapped = orientation >= 5;
  const std::size_t out_width = swapped ? height : width;
  const std::size_t out_height = swapped ? width : height;
  std::vector<std::byte> upright(pixels.size());
  for (std::size_t y = 0; y < out_height; ++y) {
    for (std::size_t x = 0; x < out_width; ++x) {
      std::size_t column = swapped ? y : x;
      std::size_t row = swapped ? x : y;
      // The stored column runs backwards for 2, 3, 7, 8, the stored row for 3, 4, 6, 7.
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        column = width - 1 - column;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        row = height - 1 - row;
      std::memcpy(&upright[(y * out_width + x) * pixel_bytes], &pixels[(row * width + column) * pixel_bytes],
                  pixel_bytes);
    }
  }
  pixels = std::move(upright);
}

void WideWriter::Axis::build(std::uint32_t source, std::uint32_t resized, std::uint32_t begin,
                             std::uint32_t count, Filter filter) {
  taps.clear();
  weights.clear();
  most = 1;
  if (filter == Filter::nearest) {
    for (const std::uint32_t position : nearest_positions(source, resized, begin, count)) {
      taps.push_back({position, 1, weights.size()});
      weights.push_back(1.0);
    }
    return;
  }
  for (std::uint32_t output = begin; output < begin + count; ++output) {
    if (source == resized) {
      taps.push_back({output, 1, weights.size()});
      weights.push_back(1.0);
      continue;
    }
    with_kernel(filter, [&](auto kernel) {
      const OutputTaps<decltype(kernel)> of(source, resized, output);
      const std::uint32_t first = of.first();
      const std::uint32_t last = of.last();
      double sum = 0;
      for (std::uint32_t at = first; at < last; ++at) sum += of.value(at);
      taps.push_back({first, last - first, weights.size()});
      for (std::uint32_t at = first; at < last; ++at)
        weights.push_back(sum != 0.0 ? of.value(at) / sum : of.value(at));
    });
    most = std::max(most, taps.back().count);
  }
}

WideWriter::WideWriter(const PreprocessOptions& options) : options_(options), spec_(options.sample_spec()) {}

void WideWriter::check(const WideView& image) const {
  const bool replicated = image.channels == 1 && spec_.channels == 3;
  if (image.channels != spec_.channels && !replicated)
    unfit(
        fmt::format("it has {} {}, the samples have {}: all images of a data set need the same channels "
                    "(option channels)",
                    image.channels, image.channels == 1 ? "channel" : "channels", spec_.channels));
  const DType dtype = spec_.dtype;
  if (is_whole(dtype) && !is_whole(image.dtype))
    unfit(fmt::format(
        "it holds floating-point or signed numbers, which are not stored as {}: dtype f32 keeps them",
        to_string(dtype)));
  if (dtype == DType::u8 && image.dtype == DType::u16)
    unfit("it has 16 bits, and u8 would keep 8 of them: dtype u16 keeps them all");
  if (!is_whole(image.dtype) && !is_identity(options_.normalization))
    unfit("it holds floating-point or signed numbers, which are kept as they are: give normalize none");
}

// Columns of one stored row.
void WideWriter::columns(const WideView& image, std::uint32_t row, double* out) {
  const std::size_t channels = image.channels;
  const std::size_t values = std::size_t{image.width} * channels;
  stored_.resize(values);
  load_values(image.dtype, image.data + row * values * size_bytes(image.dtype), values, stored_.data());
  for (std::size_t x = 0; x < columns_.taps.size(); ++x) {
    const Axis::Taps& taps = columns_.taps[x];
    const double* const weights = &columns_.weights[taps.weights];
    double* const to = out + x * channels;
    std::fill_n(to, channels, 0.0);
    for (std::uint32_t k = 0; k < taps.count; ++k) {
      if (weights[k] == 0.0) continue;
      const double* const from = &stored_[(taps.first + k) * channels];
      for (std::size_t c = 0; c < channels; ++c) to[c] += from[c] * weights[k];
    }
  }
}

std::uint32_t WideWriter::bits_of(double value, DType from, std::size_t channel) const {
  if (spec_.dtype == DType::u16)
    return static_cast<std::uint32_t>(rounded_whole(from == DType::u8 ? value * 257.0 : value, 65535.0));
  if (spec_.dtype == DType::u8) return static_cast<std::uint32_t>(rounded_whole(value, 255.0));
  if (!is_whole(from)) return rounded_bits(spec_.dtype, static_cast<float>(value));
  const float most = full_scale(from);
  const float scaled = static_cast<float>(rounded_whole(value, static_cast<double>(most))) / most;
  const float centered = scaled - mean_of(options_.normalization, channel);
  return rounded_bits(spec_.dtype, centered / std_of(options_.normalization, channel));
}

void WideWriter::finish(const double* row, std::uint32_t y, const WideView& image, std::byte* sample) const {
  const bool planes = spec_.layout == Layout::nchw;
  const bool floats = !is_whole(spec_.dtype);
  const std::size_t element = size_bytes(spec_.dtype);
  const std::uint32_t sign = 1U << (8 * element - 1);
  const std::uint32_t infinity = rounded_bits(spec_.dtype, std::numeric_limits<float>::infinity());
  for (std::size_t x = 0; x < spec_.width; ++x) {
    for (std::size_t c = 0; c < spec_.channels; ++c) {
      const double value = row[x * image.channels + (image.channels == 1 ? 0 : c)];
      const std::size_t at = planes ? (c * spec_.height + y) * spec_.width + x
                                    : (std::size_t{y} * spec_.width + x) * spec_.channels + c;
      const std::uint32_t bits = bits_of(value, image.dtype, c);
      if (floats && (bits & ~sign) == infinity && std::isfinite(value))
        refuse_overflow(spec_.dtype, value, y, x);
      std::memcpy(sample + at * element, &bits, element);  // little-endian
    }
  }
}

template <class Element>
void WideWriter::pick(const WideView& image, std::span<std::byte> sample) const {
  const bool planes = spec_.layout == Layout::nchw;
  const std::size_t row_bytes = std::size_t{image.width} * image.channels * sizeof(Element);
  const std::size_t pixels = std::size_t{spec_.height} * spec_.width;
  std::size_t pixel = 0;
  for (const Axis::Taps& row : rows_.taps) {
    const std::byte* const from = image.data + row.first * row_bytes;
    for (const Axis::Taps& column : columns_.taps) {
      for (std::size_t c = 0; c < spec_.channels; ++c) {
        const std::size_t element =
            std::size_t{column.first} * image.channels + (image.channels == 1 ? 0 : c);
        const std::size_t at = planes ? c * pixels + pixel : pixel * spec_.channels + c;
        std::memcpy(&sample[at * sizeof(Element)], from + element * sizeof(Element), sizeof(Element));
      }
      ++pixel;
    }
  }
}

void WideWriter::write(const WideView& image, const SampleSpec& made, std::span<std::byte> sample) {
  check(image);
  spec_ = made;
  const Size source{image.width, image.height};
  const Size resized = resized_size(source, options_);
  const Box box = crop_box(resized, options_);
  columns_.build(source.width, resized.width, box.left, box.width, options_.filter);
  rows_.build(source.height, resized.height, box.top, box.height, options_.filter);
  if (options_.filter == Filter::nearest && image.dtype == spec_.dtype) {
    switch (size_bytes(spec_.dtype)) {
      case 1:
        return pick<std::uint8_t>(image, sample);
      case 2:
        return pick<std::uint16_t>(image, sample);
      default:
        return pick<std::uint32_t>(image, sample);
    }
  }
  const std::size_t values = std::size_t{box.width} * image.channels;
  const std::size_t slots = rows_.most;
  ring_.resize(slots * values);
  finished_.resize(values);
  std::uint32_t ready = rows_.taps.front().first;  // rows before it are in the ring, or not needed
  for (std::uint32_t y = 0; y < box.height; ++y) {
    const Axis::Taps& taps = rows_.taps[y];
    ready = std::max(ready, taps.first);
    for (; ready < taps.first + taps.count; ++ready) columns(image, ready, &ring_[ready % slots * values]);
    const double* const weights = &rows_.weights[taps.weights];
    std::fill(finished_.begin(), finished_.end(), 0.0);
    for (std::uint32_t k = 0; k < taps.count; ++k) {
      if (weights[k] == 0.0) continue;
      const double* const row = &ring_[(taps.first + k) % slots * values];
      for (std::size_t i = 0; i < values; ++i) finished_[i] += row[i] * weights[k];
    }
    finish(finished_.data(), y, image, sample.data());
  }
}

}  // namespace shard::image
