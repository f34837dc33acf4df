#include <algorithm>

#include "image/resample/resample_kernels.hpp"

namespace shard::image {
namespace {

constexpr std::uint32_t kRows = 4;

std::int32_t even_weight(const std::int32_t* pair) {
  return static_cast<std::int16_t>(pair[0] & 0xFFFF) + static_cast<std::int16_t>(pair[1] & 0xFFFF) * 65536;
}
std::int32_t odd_weight(const std::int32_t* pair) {
  return static_cast<std::int16_t>(pair[0] >> 16) + (pair[1] >> 16) * 65536;
}
std::uint8_t round_to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

std::size_t scratch_bytes(const AxisPlan&) { return 0; }

void horizontal(const AxisPlan& plan, const std::uint8_t* const* rows, std::size_t row_bytes, std::byte*,
                std::uint8_t* const* pair_rows) {
  for (std::uint32_t row = 0; row < kRows; ++row) {
    const std::uint8_t* const in = rows[row];
    std::uint8_t* const out = pair_rows[row / 2] + (row % 2) * 2;
    std::size_t column = 0;
    for (const AxisPlan::Output& output : plan.outputs) {
      for (std::size_t channel = 0; channel < 3; ++channel, ++column) {
        std::int32_t sum = 1 << (kPrecisionBits - 1);
        for (std::uint32_t pair = 0; pair < output.pair_count; ++pair) {
          const std::int32_t* const weights = &plan.weights[output.first_weight + 2 * pair];
          const std::size_t even = std::size_t{output.first_pair + pair} * 6 + channel;
          sum += in[even] * even_weight(weights);
          if (even + 3 < row_bytes) sum += in[even + 3] * odd_weight(weights);
        }
        out[column / 2 * 4 + column % 2] = round_to_byte(sum);
      }
    }
  }
}

void vertical(const AxisPlan& plan, std::uint32_t y, const std::uint8_t* const* pair_rows,
              std::size_t columns, std::uint8_t* out) {
  const AxisPlan::Output& output = plan.outputs[y];
  for (std::size_t column = 0; column < columns; ++column) {
    std::int32_t sum = 1 << (kPrecisionBits - 1);
    for (std::uint32_t pair = 0; pair < output.pair_count; ++pair) {
      const std::int32_t* const weights = &plan.weights[output.first_weight + 2 * pair];
      const std::uint8_t* const in = pair_rows[pair] + column / 2 * 4 + column % 2;
      sum += in[0] * even_weight(weights) + in[2] * odd_weight(weights);
    }
    out[column] = round_to_byte(sum);
  }
}

}  // namespace

ResampleKernels scalar_resample_kernels() { return {kRows, scratch_bytes, horizontal, vertical}; }

}  // namespace shard::image
