#include "transform/resize_plan.hpp"

#include <algorithm>

namespace shard {

namespace {

// Taps and weights of all outputs; weights[x * stride + k], zero from the output's count on. Returns the
// greatest count.
std::uint32_t fill_taps(std::uint32_t box, std::uint32_t out, std::vector<Taps>& taps,
                        std::vector<std::int16_t>& weights) {
  const auto box_size = static_cast<std::int32_t>(box);
  const auto out_size = static_cast<std::int32_t>(out);
  taps.resize(out);
  std::uint32_t max_taps = 1;
  for (std::uint32_t x = 0; x < out; ++x) {
    taps[x] = taps_of(box_size, out_size, static_cast<std::int32_t>(x));
    max_taps = std::max(max_taps, taps[x].count);
  }
  weights.assign(std::size_t{out} * max_taps, 0);
  for (std::uint32_t x = 0; x < out; ++x)
    tap_weights(box_size, out_size, static_cast<std::int32_t>(x), taps[x],
                &weights[std::size_t{x} * max_taps], 1);
  return max_taps;
}

}  // namespace

void VerticalPlan::build(std::uint32_t box, std::uint32_t out) {
  max_taps = fill_taps(box, out, taps, weights);
}

void HorizontalPlan::build(std::uint32_t box, std::uint32_t out, std::uint32_t channels_, bool flip) {
  channels = channels_;
  max_taps = fill_taps(box, out, taps_, pixel_weights_);
  const std::uint32_t bytes = out * channels;
  units = (bytes + kUnit - 1) / kUnit;
  units = (units + kUnitMultiple - 1) / kUnitMultiple * kUnitMultiple;
  offsets.assign(units, 0);
  const auto pixel_of = [&](std::uint32_t byte) {
    const std::uint32_t pixel = byte / channels;
    return flip ? out - 1 - pixel : pixel;
  };

  windows = 1;
  for (std::uint32_t unit = 0; unit * kUnit < bytes; ++unit) {
    // First taps rise with the pixel, so the ends of the unit hold the nearest and the farthest.
    const std::uint32_t a = taps_[pixel_of(unit * kUnit)].first;
    const std::uint32_t b = taps_[pixel_of(std::min(unit * kUnit + kUnit, bytes) - 1)].first;
    offsets[unit] = std::min(a, b) * channels;
    windows = std::max(windows, ((std::max(a, b) - std::min(a, b) + 1) * channels - 1) / 16 + 1);
  }
  reach = std::size_t{*std::max_element(offsets.begin(), offsets.end())} + (max_taps - 1) * channels +
          windows * 16;

  shuffles.assign(std::size_t{windows} * units * 16, kNothing);
  weights.assign(max_taps * row_values(), 0);
  for (std::uint32_t byte = 0; byte < bytes; ++byte) {
    const std::uint32_t pixel = pixel_of(byte);
    const std::uint32_t unit = byte / kUnit;
    const std::uint32_t at = taps_[pixel].first * channels + byte % channels - offsets[unit];
    shuffles[(std::size_t{at / 16} * units + unit) * 16 + byte % kUnit * 2 + 1] =
        static_cast<std::uint8_t>(at % 16);
    for (std::uint32_t k = 0; k < taps_[pixel].count; ++k)
      weights[k * row_values() + byte] = pixel_weights_[std::size_t{pixel} * max_taps + k];
  }
}

}  // namespace shard
