// The transform as plain loops over the arithmetic, element by element: what host vectors and CUDA kernels
// must equal.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "shard/loader/transform.hpp"
#include "transform/arithmetic.hpp"

namespace shard::testing {

// Element index of (channel, row, column).
inline std::size_t element_of(const SampleSpec& spec, std::size_t c, std::size_t y, std::size_t x) {
  if (spec.layout == Layout::nchw) return (c * spec.height + y) * spec.width + x;
  return (y * spec.width + x) * spec.channels + c;
}

inline std::uint8_t byte_of(const TransformWork& work, std::size_t i, std::size_t c, std::size_t y,
                            std::size_t x) {
  return static_cast<std::uint8_t>(work.sources[i][element_of(work.stored, c, y, x)]);
}

// [row of the crop][column], one channel of one sample, resized but not flipped.
inline std::vector<std::uint8_t> reference_resize(const TransformWork& work, std::size_t i, std::size_t c) {
  const SampleCrop& crop = work.crops[i];
  const SampleSpec& out = work.delivered;
  const auto resample = [](std::uint32_t box, std::uint32_t size, std::uint32_t x, const auto& value) {
    const auto from = static_cast<std::int32_t>(box);
    const auto to = static_cast<std::int32_t>(size);
    const Taps taps = taps_of(from, to, static_cast<std::int32_t>(x));
    std::vector<std::int16_t> weights(taps.count);
    tap_weights(from, to, static_cast<std::int32_t>(x), taps, weights.data(), 1);
    std::int32_t sum = 0;
    for (std::uint32_t k = 0; k < taps.count; ++k) sum += tap_term(value(taps.first + k), weights[k]);
    return sum;
  };
  std::vector<std::int16_t> columns(std::size_t{crop.height} * out.width);
  for (std::uint32_t y = 0; y < crop.height; ++y)
    for (std::uint32_t x = 0; x < out.width; ++x)
      columns[std::size_t{y} * out.width + x] =
          sum_to_value(resample(crop.width, out.width, x, [&](std::uint32_t at) {
            return tap_value(byte_of(work, i, c, crop.top + y, crop.left + at));
          }));
  std::vector<std::uint8_t> rows(std::size_t{out.height} * out.width);
  for (std::uint32_t y = 0; y < out.height; ++y)
    for (std::uint32_t x = 0; x < out.width; ++x)
      rows[std::size_t{y} * out.width + x] =
          sum_to_byte(resample(crop.height, out.height, y,
                               [&](std::uint32_t at) { return columns[std::size_t{at} * out.width + x]; }));
  return rows;
}

// (byte / 255 - mean) / std in float32, rounded to the delivered type.
inline void reference_value(const TransformWork& work, std::size_t c, std::uint8_t byte, std::byte* out) {
  if (work.delivered.dtype == DType::u8) {
    *out = std::byte{byte};
    return;
  }
  const bool known = work.normalize && c < 3;
  volatile float value = static_cast<float>(byte) / 255.0F;  // volatile: no step is fused with the next
  value = value - (known ? work.normalization.mean[c] : 0.0F);
  value = value / (known ? work.normalization.std[c] : 1.0F);
  const float rounded = value;
  if (work.delivered.dtype == DType::f32) {
    std::memcpy(out, &rounded, 4);
    return;
  }
  const std::uint16_t half = work.delivered.dtype == DType::f16 ? f32_to_f16(rounded) : f32_to_bf16(rounded);
  std::memcpy(out, &half, 2);
}

// Samples stored as floats, and wide ones.
inline float float_of(const TransformWork& work, std::size_t i, std::size_t c, std::size_t y, std::size_t x) {
  const std::byte* const at =
      work.sources[i] + element_of(work.stored, c, y, x) * size_bytes(work.stored.dtype);
  if (work.stored.dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, at, 4);
    return value;
  }
  if (work.stored.dtype == DType::u8) return static_cast<float>(static_cast<std::uint8_t>(*at));
  std::uint16_t half = 0;
  std::memcpy(&half, at, 2);
  if (work.stored.dtype == DType::u16) return static_cast<float>(half);
  return work.stored.dtype == DType::f16 ? f16_to_f32(half) : bf16_to_f32(half);
}

// Output x of `size` over `box` values: a triangle around its centre, in units of 1 / (2 size), where
// distances are integers. The support is twice as wide as the larger of the two steps; its ends are outside.
template <class Value>
float reference_average(std::int64_t box, std::int64_t size, std::int64_t x, const Value& value) {
  const std::int64_t support = 2 * std::max(box, size);
  const auto height = [&](std::int64_t i) {
    return std::max<std::int64_t>(support - std::abs((2 * i + 1) * size - (2 * x + 1) * box), 0);
  };
  // No value further away has a height.
  const std::int64_t center = (2 * x + 1) * box / (2 * size);
  const std::int64_t reach = support / (2 * size) + 2;
  const std::int64_t begin = std::max<std::int64_t>(center - reach, 0);
  const std::int64_t end = std::min(center + reach, box);
  std::int64_t total = 0;
  for (std::int64_t i = begin; i < end; ++i) total += height(i);
  volatile float sum = 0;  // volatile: no step is fused with the next
  bool first = true;
  for (std::int64_t i = begin; i < end; ++i) {
    if (height(i) == 0) continue;
    volatile float term = static_cast<float>(height(i)) / static_cast<float>(total);
    term = value(static_cast<std::size_t>(i)) * term;
    sum = first ? term : sum + term;
    first = false;
  }
  return sum;
}

// [row of the crop][column], one channel of one sample, resized but not flipped.
inline std::vector<float> reference_float_resize(const TransformWork& work, std::size_t i, std::size_t c) {
  const SampleCrop& crop = work.crops[i];
  const SampleSpec& out = work.delivered;
  std::vector<float> columns(std::size_t{crop.height} * out.width);
  for (std::uint32_t y = 0; y < crop.height; ++y)
    for (std::uint32_t x = 0; x < out.width; ++x)
      columns[std::size_t{y} * out.width + x] = reference_average(
          crop.width, out.width, x,
          [&](std::size_t at) { return float_of(work, i, c, crop.top + y, crop.left + at); });
  std::vector<float> rows(std::size_t{out.height} * out.width);
  for (std::uint32_t y = 0; y < out.height; ++y)
    for (std::uint32_t x = 0; x < out.width; ++x)
      rows[std::size_t{y} * out.width + x] = reference_average(
          crop.height, out.height, y, [&](std::size_t at) { return columns[at * out.width + x]; });
  return rows;
}

// Normalised and rounded to the delivered type; a NaN is that of float_arithmetic.hpp.
inline void reference_float(const TransformWork& work, std::size_t c, float stored, std::byte* out) {
  volatile float value = stored;
  if (work.delivered.dtype == DType::u8 || work.delivered.dtype == DType::u16) {  // ties to even
    const auto whole = static_cast<std::uint16_t>(std::lrint(stored));
    std::memcpy(out, &whole, size_bytes(work.delivered.dtype));
    return;
  }
  if (work.stored.dtype == DType::u8) value = value / 255.0F;
  if (work.stored.dtype == DType::u16) value = value / 65535.0F;
  if (work.normalize) {
    const bool known = c < work.normalization.mean.size();
    value = value - (known ? work.normalization.mean[c] : 0.0F);
    value = value / (known ? work.normalization.std[c] : 1.0F);
  }
  const float rounded = value;
  std::uint32_t bits = 0;
  const bool nan = std::isnan(rounded);
  switch (work.delivered.dtype) {
    case DType::f16:
      bits = nan ? 0x7E00 : f32_to_f16(rounded);
      break;
    case DType::bf16:
      bits = nan ? 0x7FC0 : f32_to_bf16(rounded);
      break;
    default:
      bits = nan ? 0x7FC00000 : std::bit_cast<std::uint32_t>(rounded);
  }
  std::memcpy(out, &bits, size_bytes(work.delivered.dtype));
}

inline void reference_float_sample(const TransformWork& work, std::size_t i, std::byte* batch) {
  const SampleCrop& crop = work.crops[i];
  const SampleSpec& out = work.delivered;
  const std::size_t element_bytes = size_bytes(out.dtype);
  const bool resized = crop.width != out.width || crop.height != out.height;
  const bool computed = resized || work.normalize || out.dtype != work.stored.dtype;
  for (std::size_t c = 0; c < out.channels; ++c) {
    const std::vector<float> pixels = resized ? reference_float_resize(work, i, c) : std::vector<float>();
    for (std::size_t y = 0; y < out.height; ++y)
      for (std::size_t x = 0; x < out.width; ++x) {
        const std::size_t from = crop.flip ? out.width - 1 - x : x;
        std::byte* const to = batch + i * out.size_bytes() + element_of(out, c, y, x) * element_bytes;
        if (!computed)
          std::memcpy(
              to,
              work.sources[i] + element_of(work.stored, c, crop.top + y, crop.left + from) * element_bytes,
              element_bytes);
        else
          reference_float(
              work, c,
              resized ? pixels[y * out.width + from] : float_of(work, i, c, crop.top + y, crop.left + from),
              to);
      }
  }
}

inline std::vector<std::byte> reference_transform(const TransformWork& work) {
  const SampleSpec& out = work.delivered;
  const std::size_t element_bytes = size_bytes(out.dtype);
  std::vector<std::byte> batch(out.size_bytes() * work.sources.size());
  for (std::size_t i = 0; i < work.sources.size(); ++i) {
    if (work.stored.dtype != DType::u8 || work.stored.channels > 4) {
      reference_float_sample(work, i, batch.data());
      continue;
    }
    const SampleCrop& crop = work.crops[i];
    const bool resized = crop.width != out.width || crop.height != out.height;
    for (std::size_t c = 0; c < out.channels; ++c) {
      const std::vector<std::uint8_t> pixels =
          resized ? reference_resize(work, i, c) : std::vector<std::uint8_t>();
      for (std::size_t y = 0; y < out.height; ++y)
        for (std::size_t x = 0; x < out.width; ++x) {
          const std::size_t from = crop.flip ? out.width - 1 - x : x;
          std::byte* const to =
              batch.data() + i * out.size_bytes() + element_of(out, c, y, x) * element_bytes;
          reference_value(
              work, c,
              resized ? pixels[y * out.width + from] : byte_of(work, i, c, crop.top + y, crop.left + from),
              to);
        }
    }
  }
  return batch;
}

}  // namespace shard::testing
