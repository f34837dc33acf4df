#include "commands/matmul/peak_flops.hpp"

#include <atomic>
#include <vector>

#include "base/system/parallel.hpp"
#include "base/system/stopwatch.hpp"

// Vectors of unknown length cannot lie in arrays; such CPUs have fixed ones as well.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "commands/matmul/peak_flops.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as it must be.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shard::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Rounds of independent multiply-adds. Returns their operations; something of the values goes to `used`, so
// that they are computed.
double spin(std::size_t rounds, std::atomic<float>& used) {
  constexpr std::size_t kChains = 12;
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.5F);
  const auto summand = hn::Set(d, 0.25F + static_cast<float>(rounds % 2));
  hn::Vec<decltype(d)> values[kChains];
  for (std::size_t i = 0; i < kChains; ++i) values[i] = hn::Set(d, static_cast<float>(i));
  for (std::size_t n = 0; n < rounds; ++n)
    for (auto& value : values) value = hn::MulAdd(value, factor, summand);
  auto sum = values[0];
  for (std::size_t i = 1; i < kChains; ++i) sum = hn::Add(sum, values[i]);
  used = hn::GetLane(hn::SumOfLanes(d, sum));
  return 2.0 * static_cast<double>(kChains * hn::MaxLanes(d)) * static_cast<double>(rounds);
}

const char* target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace
}  // namespace shard::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shard::bench {

HWY_EXPORT(spin);
HWY_EXPORT(target);

double peak_flops(unsigned threads, double seconds) {
  std::vector<double> operations(threads, 0);
  std::atomic<float> used{0};
  const Stopwatch watch;
  run_threads(threads, [&](unsigned thread) {
    do operations[thread] += HWY_DYNAMIC_DISPATCH(spin)(100'000, used);
    while (watch.seconds() < seconds);
  });
  double all = 0;
  for (const double one : operations) all += one;
  return all / watch.seconds();
}

std::string peak_simd_target() { return HWY_DYNAMIC_DISPATCH(target)(); }

}  // namespace shard::bench
#endif
