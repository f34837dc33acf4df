#include "image/resample/filter.hpp"

#include <algorithm>

#include "image/resample/filter_kernels.hpp"

namespace shard::image {
namespace {

// Coefficients of all outputs, one after the other.
struct Taps {
  struct Range {
    std::uint32_t source = 0;  // position of the first coefficient
    std::uint32_t count = 0;
    std::size_t first = 0;  // index into coefficients
  };
  std::vector<Range> ranges;
  std::vector<std::int32_t> coefficients;
};

// Drops coefficients at the ends that rounded to 0: they take no part.
Taps::Range without_zeros(const std::vector<std::int32_t>& coefficients, Taps::Range range) {
  const std::int32_t* const first = coefficients.data() + range.first;
  while (range.count > 1 && first[range.count - 1] == 0) --range.count;
  std::uint32_t zeros = 0;
  while (zeros + 1 < range.count && first[zeros] == 0) ++zeros;
  return {range.source + zeros, range.count - zeros, range.first + zeros};
}

// precompute_coeffs and normalize_coeffs_8bpc for outputs [begin, begin + count).
template <class Kernel>
Taps compute_taps(std::uint32_t source, std::uint32_t resized, std::uint32_t begin, std::uint32_t count) {
  Taps taps;
  taps.ranges.reserve(count);
  std::vector<double> values;
  for (std::uint32_t output = begin; output < begin + count; ++output) {
    const OutputTaps<Kernel> of(source, resized, output);
    const std::uint32_t size = of.last() - of.first();
    if (values.size() < size) values.resize(size);
    if (taps.coefficients.empty()) taps.coefficients.reserve(std::size_t{size} * count);
    double sum = 0.0;
    for (std::uint32_t i = 0; i < size; ++i) {
      values[i] = of.value(of.first() + i);
      sum += values[i];
    }
    const Taps::Range range{of.first(), size, taps.coefficients.size()};
    for (std::uint32_t i = 0; i < size; ++i) taps.coefficients.push_back(fixed_coefficient(values[i], sum));
    taps.ranges.push_back(without_zeros(taps.coefficients, range));
  }
  return taps;
}

Taps nearest_taps(std::uint32_t source, std::uint32_t resized, std::uint32_t begin, std::uint32_t count) {
  Taps taps;
  taps.coefficients.push_back(fixed_coefficient(1.0, 1.0));
  for (const std::uint32_t position : nearest_positions(source, resized, begin, count))
    taps.ranges.push_back({position, 1, 0});
  return taps;
}

Taps compute_taps(std::uint32_t source, std::uint32_t resized, std::uint32_t begin, std::uint32_t count,
                  Filter filter) {
  if (filter == Filter::nearest) return nearest_taps(source, resized, begin, count);
  return with_kernel(
      filter, [&](auto kernel) { return compute_taps<decltype(kernel)>(source, resized, begin, count); });
}

std::int32_t pack(std::int32_t even, std::int32_t odd) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(even) & 0xFFFFU) |
                                   (static_cast<std::uint32_t>(odd) << 16));
}

void append_pairs(const std::int32_t* coefficients, std::uint32_t offset, std::uint32_t count,
                  AxisPlan& plan) {
  AxisPlan::Output output;
  output.first_pair = offset / 2;
  output.pair_count = (offset + count + 1) / 2 - output.first_pair;
  output.first_weight = plan.weights.size();
  for (std::uint32_t pair = 0; pair < output.pair_count; ++pair) {
    const std::uint32_t position = 2 * (output.first_pair + pair);
    const std::int32_t even = position >= offset ? coefficients[position - offset] : 0;
    const std::int32_t odd = position + 1 < offset + count ? coefficients[position + 1 - offset] : 0;
    const std::int32_t even_low = static_cast<std::int16_t>(even & 0xFFFF);
    const std::int32_t odd_low = static_cast<std::int16_t>(odd & 0xFFFF);
    plan.weights.push_back(pack(even_low, odd_low));
    plan.weights.push_back(pack((even - even_low) >> 16, (odd - odd_low) >> 16));
  }
  plan.max_pairs = std::max(plan.max_pairs, output.pair_count);
  plan.outputs.push_back(output);
}

}  // namespace

AxisPlan plan_axis(std::uint32_t source, std::uint32_t resized, std::uint32_t begin, std::uint32_t count,
                   Filter filter) {
  const Taps taps = compute_taps(source, resized, begin, count, filter);
  AxisPlan plan;
  plan.source_begin = source;
  // Once zeros are dropped, an output may start before an earlier one.
  for (const Taps::Range& range : taps.ranges) {
    plan.source_begin = std::min(plan.source_begin, range.source);
    plan.source_end = std::max(plan.source_end, range.source + range.count);
  }
  plan.outputs.reserve(count);
  plan.weights.reserve(std::max<std::size_t>(taps.coefficients.size(), count) + 4 * std::size_t{count});
  for (const Taps::Range& range : taps.ranges) {
    append_pairs(&taps.coefficients[range.first], range.source - plan.source_begin, range.count, plan);
  }
  std::uint32_t needed_from = ~0U;
  for (auto output = plan.outputs.rbegin(); output != plan.outputs.rend(); ++output) {
    needed_from = std::min(needed_from, output->first_pair);
    plan.max_span = std::max(plan.max_span, output->first_pair + output->pair_count - needed_from);
  }
  return plan;
}

std::shared_ptr<const AxisPlan> AxisPlanCache::get(std::uint32_t source, std::uint32_t resized,
                                                   std::uint32_t begin, std::uint32_t count, Filter filter) {
  constexpr std::size_t kEntries = 64;
  constexpr std::size_t kMaxWeights = 1 << 18;  // larger plans are rare, and are not kept
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->source == source && entry->resized == resized && entry->begin == begin &&
        entry->count == count && entry->filter == filter) {
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->plan;
    }
  }
  auto plan = std::make_shared<const AxisPlan>(plan_axis(source, resized, begin, count, filter));
  if (plan->weights.size() <= kMaxWeights) {
    entries_.push_front(Entry{source, resized, begin, count, filter, plan});
    if (entries_.size() > kEntries) entries_.pop_back();
  }
  return plan;
}

}  // namespace shard::image
