#include "image/filter.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shard::image {
namespace {

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double bilinear(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

struct Kernel {
  double (*value)(double);
  double support;
};

Kernel kernel_of(Filter filter) {
  switch (filter) {
    case Filter::box:
      return {box, 0.5};
    case Filter::bilinear:
      return {bilinear, 1.0};
    case Filter::bicubic:
      return {bicubic, 2.0};
    case Filter::lanczos:
      break;
  }
  return {lanczos, 3.0};
}

struct Taps {
  std::int64_t first = 0;  // source position of the first value
  std::vector<double> values;
  std::vector<std::int32_t> fixed;
};

// precompute_coeffs and normalize_coeffs_8bpc for one output position.
void compute_taps(std::uint32_t source, std::uint32_t resized, std::uint32_t output, const Kernel& kernel,
                  Taps& taps) {
  const double scale = static_cast<double>(static_cast<float>(source)) / resized;
  const double filter_scale = std::max(scale, 1.0);
  const double support = kernel.support * filter_scale;
  const double inverse = 1.0 / filter_scale;
  const double center = (output + 0.5) * scale;
  const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
  const auto last = std::min<std::int64_t>(static_cast<std::int64_t>(center + support + 0.5), source);
  taps.first = first;
  taps.values.clear();
  taps.fixed.clear();
  double sum = 0.0;
  for (std::int64_t i = 0; i < last - first; ++i) {
    const double weight = kernel.value((static_cast<double>(i + first) - center + 0.5) * inverse);
    taps.values.push_back(weight);
    sum += weight;
  }
  for (double& value : taps.values) {
    if (sum != 0.0) value /= sum;
    constexpr double kOne = 1 << kPrecisionBits;
    taps.fixed.push_back(static_cast<std::int32_t>(value < 0 ? -0.5 + value * kOne : 0.5 + value * kOne));
  }
  // Coefficients that rounded to 0 take no part.
  while (taps.fixed.size() > 1 && taps.fixed.back() == 0) taps.fixed.pop_back();
  const auto keep = std::find_if(taps.fixed.begin(), taps.fixed.end() - (taps.fixed.empty() ? 0 : 1),
                                 [](std::int32_t k) { return k != 0; });
  taps.first += keep - taps.fixed.begin();
  taps.fixed.erase(taps.fixed.begin(), keep);
}

std::int32_t pack(std::uint32_t even, std::uint32_t odd) {
  return static_cast<std::int32_t>((even & 0xFFFFU) | (odd << 16));
}

void append_pairs(const Taps& taps, std::uint32_t source_begin, AxisPlan& plan) {
  const auto offset = static_cast<std::uint32_t>(taps.first) - source_begin;
  const auto count = static_cast<std::uint32_t>(taps.fixed.size());
  AxisPlan::Output output;
  output.first_pair = offset / 2;
  output.pair_count = (offset + count + 1) / 2 - output.first_pair;
  output.first_weight = plan.weights.size();
  const auto tap = [&](std::uint32_t position) {
    return position >= offset && position - offset < count ? taps.fixed[position - offset] : 0;
  };
  for (std::uint32_t pair = 0; pair < output.pair_count; ++pair) {
    const std::int32_t even = tap(2 * (output.first_pair + pair));
    const std::int32_t odd = tap(2 * (output.first_pair + pair) + 1);
    const std::int32_t even_low = static_cast<std::int16_t>(even & 0xFFFF);
    const std::int32_t odd_low = static_cast<std::int16_t>(odd & 0xFFFF);
    plan.weights.push_back(pack(static_cast<std::uint32_t>(even_low), static_cast<std::uint32_t>(odd_low)));
    plan.weights.push_back(pack(static_cast<std::uint32_t>((even - even_low) >> 16),
                                static_cast<std::uint32_t>((odd - odd_low) >> 16)));
  }
  plan.max_pairs = std::max(plan.max_pairs, output.pair_count);
  plan.outputs.push_back(output);
}

}  // namespace

AxisPlan plan_axis(std::uint32_t source, std::uint32_t resized, std::uint32_t begin, std::uint32_t count,
                   Filter filter) {
  const Kernel kernel = kernel_of(filter);
  AxisPlan plan;
  plan.outputs.reserve(count);
  Taps taps;
  // Taps of an output may start up to a few positions before those of an earlier one once zeros are dropped:
  // the first position is the smallest over all.
  std::vector<Taps> all;
  std::int64_t first = source;
  std::int64_t last = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    compute_taps(source, resized, begin + i, kernel, taps);
    first = std::min(first, taps.first);
    last = std::max(last, taps.first + static_cast<std::int64_t>(taps.fixed.size()));
    all.push_back({taps.first, {}, taps.fixed});
  }
  plan.source_begin = static_cast<std::uint32_t>(first);
  plan.source_end = static_cast<std::uint32_t>(last);
  for (const Taps& of_output : all) append_pairs(of_output, plan.source_begin, plan);
  std::uint32_t needed_from = ~0U;
  for (auto output = plan.outputs.rbegin(); output != plan.outputs.rend(); ++output) {
    needed_from = std::min(needed_from, output->first_pair);
    plan.max_span = std::max(plan.max_span, output->first_pair + output->pair_count - needed_from);
  }
  return plan;
}

std::shared_ptr<const AxisPlan> AxisPlanCache::get(std::uint32_t source, std::uint32_t resized,
                                                   std::uint32_t begin, std::uint32_t count, Filter filter) {
  constexpr std::size_t kEntries = 32;
  constexpr std::size_t kMaxWeights = 1
                                      << 18;  // larger plans are for a picture out of the ordinary: not kept
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
