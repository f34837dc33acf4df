// Plain loops, for CPUs without vectors that Highway knows.
#include <cstring>

#include "transform/transform_kernels.hpp"

namespace shard {

namespace {

void horizontal(const HorizontalPlan& plan, const std::uint8_t* const* rows,
                const std::uint8_t* const* /*soon*/, std::size_t count, std::int16_t* const* outs) {
  const std::size_t row_values = plan.row_values();
  for (std::size_t i = 0; i < row_values; ++i) {
    const std::size_t unit = i / HorizontalPlan::kUnit;
    std::size_t at = 0;  // of the byte for tap 0; any for padding, whose weights are 0
    for (std::uint32_t window = 0; window < plan.windows; ++window) {
      const std::uint8_t byte =
          plan.shuffles[(window * std::size_t{plan.units} + unit) * 16 + i % HorizontalPlan::kUnit * 2 + 1];
      if (byte != HorizontalPlan::kNothing) at = plan.offsets[unit] + 16 * window + byte;
    }
    for (std::size_t r = 0; r < count; ++r) {
      std::int32_t sum = 0;
      for (std::uint32_t k = 0; k < plan.max_taps; ++k)
        sum += tap_term(tap_value(rows[r][at + k * plan.channels]), plan.weights[k * row_values + i]);
      outs[r][i] = sum_to_value(sum);
    }
  }
}

void vertical(const std::int16_t* const* rows, const std::int16_t* weights, std::size_t taps, std::size_t n,
              std::uint8_t* out, bool /*past_caches*/) {
  for (std::size_t x = 0; x < n; ++x) {
    std::int32_t sum = 0;
    for (std::size_t k = 0; k < taps; ++k) sum += tap_term(rows[k][x], weights[k]);
    out[x] = sum_to_byte(sum);
  }
}

template <std::size_t kBytes>
void reverse(const std::byte* in, std::size_t pixels, std::uint32_t channels, std::byte* out) {
  const std::size_t pixel = kBytes * channels;
  for (std::size_t x = 0; x < pixels; ++x) std::memcpy(out + (pixels - 1 - x) * pixel, in + x * pixel, pixel);
}

template <std::size_t kBytes>
void split(const std::byte* in, std::size_t pixels, std::uint32_t channels, std::byte* const* planes) {
  for (std::size_t x = 0; x < pixels; ++x)
    for (std::size_t c = 0; c < channels; ++c)
      std::memcpy(planes[c] + x * kBytes, in + (x * channels + c) * kBytes, kBytes);
}

template <std::size_t kBytes>
void join(const std::byte* const* planes, std::size_t pixels, std::uint32_t channels, std::byte* out) {
  for (std::size_t x = 0; x < pixels; ++x)
    for (std::size_t c = 0; c < channels; ++c)
      std::memcpy(out + (x * channels + c) * kBytes, planes[c] + x * kBytes, kBytes);
}

}  // namespace

TransformKernels scalar_transform_kernels() {
  return {horizontal,
          vertical,
          {reverse<1>, reverse<2>, reverse<4>},
          {split<1>, split<2>, split<4>},
          {join<1>, join<2>, join<4>},
          values_by_table,
          values_by_table};
}

void values_by_table(const ValueLanes& lanes, const std::uint8_t* in, std::size_t n, std::byte* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = lanes.map->bits[lanes.first_channel + i % lanes.channels][in[i]];
    if (lanes.map->dtype == DType::f32) {
      std::memcpy(out + 4 * i, &bits, 4);
    } else {
      const auto half = static_cast<std::uint16_t>(bits);
      std::memcpy(out + 2 * i, &half, 2);
    }
  }
}

void ValueLanes::set(const ValueMap& value_map, std::uint32_t channel, std::uint32_t channel_count) {
  map = &value_map;
  first_channel = channel;
  channels = channel_count;
  for (std::size_t i = 0; i < scale.size(); ++i) {
    const std::size_t c = channel + i % channel_count;
    scale[i] = value_map.scale[c];
    bias[i] = value_map.bias[c];
    mean[i] = value_map.mean[c];
    std[i] = value_map.std[c];
    inverse_std[i] = 1.0F / value_map.std[c];
  }
}

}  // namespace shard
