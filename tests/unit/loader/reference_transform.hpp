// The transform as plain loops over the arithmetic, element by element: what host vectors and CUDA kernels
// must equal.
#pragma once

#include <cstddef>
#include <cstdint>
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
  const SampleView& view = work.views[i];
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
  std::vector<std::int16_t> columns(std::size_t{view.height} * out.width);
  for (std::uint32_t y = 0; y < view.height; ++y)
    for (std::uint32_t x = 0; x < out.width; ++x)
      columns[std::size_t{y} * out.width + x] =
          sum_to_value(resample(view.width, out.width, x, [&](std::uint32_t at) {
            return tap_value(byte_of(work, i, c, view.top + y, view.left + at));
          }));
  std::vector<std::uint8_t> rows(std::size_t{out.height} * out.width);
  for (std::uint32_t y = 0; y < out.height; ++y)
    for (std::uint32_t x = 0; x < out.width; ++x)
      rows[std::size_t{y} * out.width + x] =
          sum_to_byte(resample(view.height, out.height, y,
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

inline std::vector<std::byte> reference_transform(const TransformWork& work) {
  const SampleSpec& out = work.delivered;
  const std::size_t element_bytes = size_bytes(out.dtype);
  std::vector<std::byte> batch(out.size_bytes() * work.sources.size());
  for (std::size_t i = 0; i < work.sources.size(); ++i) {
    const SampleView& view = work.views[i];
    const bool resized = view.width != out.width || view.height != out.height;
    for (std::size_t c = 0; c < out.channels; ++c) {
      const std::vector<std::uint8_t> pixels =
          resized ? reference_resize(work, i, c) : std::vector<std::uint8_t>();
      for (std::size_t y = 0; y < out.height; ++y)
        for (std::size_t x = 0; x < out.width; ++x) {
          const std::size_t from = view.flip ? out.width - 1 - x : x;
          std::byte* const to =
              batch.data() + i * out.size_bytes() + element_of(out, c, y, x) * element_bytes;
          if (work.stored.dtype != DType::u8)
            std::memcpy(
                to,
                work.sources[i] + element_of(work.stored, c, view.top + y, view.left + from) * element_bytes,
                element_bytes);
          else
            reference_value(
                work, c,
                resized ? pixels[y * out.width + from] : byte_of(work, i, c, view.top + y, view.left + from),
                to);
        }
    }
  }
  return batch;
}

}  // namespace shard::testing
