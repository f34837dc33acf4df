// The coefficients of one axis of a resize, as Pillow's precompute_coeffs and normalize_coeffs_8bpc make
// them.
//
// Source of the algorithm: Pillow, src/libImaging/Resample.c (filters, support, rounding to 22 bits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "shard/image/preprocess.hpp"

namespace shard::image {

inline constexpr int kPrecisionBits = 32 - 8 - 2;

// Outputs [begin, begin + count) of `source` positions resized to `resized` positions.
//
// Source positions are taken in pairs, counted from source_begin: pair p holds positions source_begin + 2p
// and + 2p + 1. Each 32-bit coefficient k is split as k = high * 65536 + low with both parts signed 16 bits,
// so that products with 8-bit values can be summed pairwise in 32 bits without loss. A pair's weights are two
// words:
//   weights[2i]     = low(k_even)  | low(k_odd)  << 16
//   weights[2i + 1] = high(k_even) | high(k_odd) << 16
// Positions outside an output's taps have coefficient 0; pairs may reach one position past source_end.
struct AxisPlan {
  struct Output {
    std::uint32_t first_pair = 0;
    std::uint32_t pair_count = 0;
    std::size_t first_weight = 0;  // index into weights
  };
  std::uint32_t source_begin = 0;  // half-open range of source positions with a coefficient other than 0
  std::uint32_t source_end = 0;
  std::uint32_t max_pairs = 0;  // largest pair_count
  // Largest number of pairs from the first that an output or any later one needs to the last that the output
  // needs.
  std::uint32_t max_span = 0;
  std::vector<Output> outputs;
  std::vector<std::int32_t> weights;
};

AxisPlan plan_axis(std::uint32_t source, std::uint32_t resized, std::uint32_t begin, std::uint32_t count,
                   Filter filter);

// The last few plans: photos of one folder tend to share their sizes. Not thread safe.
class AxisPlanCache {
 public:
  std::shared_ptr<const AxisPlan> get(std::uint32_t source, std::uint32_t resized, std::uint32_t begin,
                                      std::uint32_t count, Filter filter);

 private:
  struct Entry {
    std::uint32_t source;
    std::uint32_t resized;
    std::uint32_t begin;
    std::uint32_t count;
    Filter filter;
    std::shared_ptr<const AxisPlan> plan;
  };
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace shard::image
