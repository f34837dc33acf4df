#include "transform/exact/exact_plan.hpp"

#include <algorithm>

#include "transform/exact/exact_filter.hpp"

namespace shard {
namespace {

constexpr std::int32_t packed(std::int32_t first, std::int32_t second) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(first) & 0xFFFFU) |
                                   static_cast<std::uint32_t>(second) << 16U);
}

constexpr ExactPair pair_of(std::int32_t first, std::int32_t second) {
  const std::int32_t first_low = static_cast<std::int16_t>(first);
  const std::int32_t second_low = static_cast<std::int16_t>(second);
  return {packed(first_low, second_low), packed((first - first_low) >> 16, (second - second_low) >> 16)};
}

void split_weights(const ExactAxis& axis, std::vector<ExactPair>& pairs) {
  pairs.resize(axis.weights.size() / 2);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    pairs[i] = pair_of(axis.weights[2 * i], axis.weights[2 * i + 1]);
}

}  // namespace

ShownOutputs shown_outputs(std::uint32_t resized, std::int32_t offset, std::uint32_t size) noexcept {
  const std::int64_t begin = std::clamp<std::int64_t>(-std::int64_t{offset}, 0, resized);
  const std::int64_t end = std::clamp<std::int64_t>(std::int64_t{size} - offset, begin, resized);
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

void ExactAxis::build(ResizeFilter filter, std::uint32_t box, std::uint32_t out, std::uint32_t begin,
                      std::uint32_t end) {
  // Outputs at the edges see less than the others, so this is exact but for an output more.
  most_pairs = (exact::most_taps(filter, box, out) + 1) / 2;
  most_taps = 0;
  const std::size_t stride = 2 * std::size_t{most_pairs};
  outputs.resize(end - begin);
  weights.assign(outputs.size() * stride, 0);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const exact::Taps taps(filter, box, out, begin + static_cast<std::uint32_t>(i));
    outputs[i] = {taps.first, taps.count};
    most_taps = std::max(most_taps, taps.count);
    for (std::uint32_t k = 0; k < taps.count; ++k) weights[i * stride + k] = taps.weight(k);
  }
}

void ExactRows::build(ResizeFilter filter, std::uint32_t box, std::uint32_t out, std::uint32_t begin,
                      std::uint32_t end) {
  axis.build(filter, box, out, begin, end);
  split_weights(axis, pairs);
}

void ExactColumns::build(ResizeFilter filter, std::uint32_t box, std::uint32_t out, std::uint32_t begin,
                         std::uint32_t end, std::uint32_t channel_count, bool flip) {
  channels = channel_count;
  axis_.build(filter, box, out, begin, end);
  const std::size_t stride = 2 * std::size_t{axis_.most_pairs};
  pairs = (axis_.most_taps + 1) / 2;
  // Outputs whose pairs would go past the row begin earlier, with zeros.
  const std::uint32_t last_first = box - std::min(box, 2 * pairs);
  for (std::size_t i = 0; i < axis_.outputs.size(); ++i) {
    std::uint32_t& first = axis_.outputs[i].first;
    if (first <= last_first) continue;
    std::int32_t* const weights = &axis_.weights[i * stride];
    std::rotate(weights, weights + 2 * pairs - (first - last_first), weights + 2 * pairs);
    first = last_first;
  }
  split_weights(axis_, pixel_pairs_);

  const std::uint32_t bytes = (end - begin) * channels;
  const auto output_of = [&](std::uint32_t byte) {
    const std::uint32_t pixel = byte / channels;
    return flip ? end - begin - 1 - pixel : pixel;
  };
  const auto first_of = [&](std::uint32_t byte) { return axis_.outputs[output_of(byte)].first; };
  const auto fits = [&] {
    for (std::uint32_t byte = 0; byte < bytes; byte += kUnit) {
      const std::uint32_t a = first_of(byte);
      const std::uint32_t b = first_of(std::min(byte + kUnit, bytes) - 1);
      if ((std::max(a, b) - std::min(a, b) + 2) * channels > 16) return false;
    }
    return true;
  };
  step = fits() ? kUnit : channels;
  const std::uint32_t used = (bytes + step - 1) / step;
  units = (used + kUnitMultiple - 1) / kUnitMultiple * kUnitMultiple;

  const std::size_t row_bytes = std::size_t{box} * channels;
  const std::size_t read = std::size_t{2} * (std::max(pairs, 1U) - 1) * channels + 16;  // from an offset
  offsets.assign(units, 0);
  shuffles.assign(std::size_t{units} * 16, kNothing);
  low.assign(pairs * lanes(), 0);
  high.assign(pairs * lanes(), 0);
  reach = read;
  for (std::uint32_t unit = 0; unit < used; ++unit) {
    const std::uint32_t begin_byte = unit * step;
    const std::uint32_t end_byte = std::min(begin_byte + step, bytes);
    std::size_t offset = std::size_t{std::min(first_of(begin_byte), first_of(end_byte - 1))} * channels;
    if (row_bytes >= read) offset = std::min(offset, row_bytes - read);
    offsets[unit] = static_cast<std::uint32_t>(offset);
    reach = std::max(reach, offset + read);
    for (std::uint32_t byte = begin_byte; byte < end_byte; ++byte) {
      const std::uint32_t output = output_of(byte);
      const std::size_t lane = std::size_t{unit} * kUnit + (byte - begin_byte);
      const std::size_t at = std::size_t{axis_.outputs[output].first} * channels + byte % channels - offset;
      shuffles[lane * 4] = static_cast<std::uint8_t>(at);
      shuffles[lane * 4 + 2] = static_cast<std::uint8_t>(at + channels);
      const ExactPair* const from = &pixel_pairs_[std::size_t{output} * axis_.most_pairs];
      for (std::uint32_t k = 0; k < pairs; ++k) {
        low[k * lanes() + lane] = from[k].low;
        high[k * lanes() + lane] = from[k].high;
      }
    }
  }
}

}  // namespace shard
