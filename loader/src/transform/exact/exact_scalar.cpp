// Plain loops, for CPUs without vectors that Highway knows.
#include "transform/exact/exact_filter.hpp"
#include "transform/exact/exact_kernels.hpp"

namespace shard {
namespace {

void columns(const ExactColumns& plan, const std::uint8_t* const* rows, const std::uint8_t* const* /*soon*/,
             std::size_t count, std::uint8_t* const* outs) {
  const std::size_t lanes = plan.lanes();
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const std::size_t unit = lane / ExactColumns::kUnit;
    const std::uint8_t first = plan.shuffles[lane * 4];
    if (first == ExactColumns::kNothing) continue;
    const std::size_t from = std::size_t{plan.offsets[unit]} + first;
    const std::size_t to = unit * plan.step + lane % ExactColumns::kUnit;
    for (std::size_t r = 0; r < count; ++r) {
      const std::uint8_t* in = rows[r] + from;
      std::int32_t sum = exact::kHalf;
      for (std::size_t k = 0; k < plan.pairs; ++k, in += 2 * plan.channels) {
        const ExactPair weights{plan.low[k * lanes + lane], plan.high[k * lanes + lane]};
        sum += in[0] * first_weight(weights) + in[plan.channels] * second_weight(weights);
      }
      outs[r][to] = exact::byte_of(sum);
    }
  }
}

void rows(const std::uint8_t* const* rows, const ExactPair* weights, std::size_t pairs, std::size_t n,
          std::uint8_t* out) {
  for (std::size_t x = 0; x < n; ++x) {
    std::int32_t sum = exact::kHalf;
    for (std::size_t k = 0; k < pairs; ++k)
      sum += rows[2 * k][x] * first_weight(weights[k]) + rows[2 * k + 1][x] * second_weight(weights[k]);
    out[x] = exact::byte_of(sum);
  }
}

}  // namespace

ExactKernels scalar_exact_kernels() { return {columns, rows}; }

}  // namespace shard
