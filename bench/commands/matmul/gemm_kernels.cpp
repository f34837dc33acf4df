#include "commands/matmul/gemm_kernels.hpp"

// Vectors of unknown length cannot lie in arrays; such CPUs have fixed ones as well.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "commands/matmul/gemm_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as it must be.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shard::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr std::size_t kLanes = hn::MaxLanes(D());
constexpr std::size_t kVectors = 2;
constexpr std::size_t kRows = kLanes >= 16 ? 12 : 6;  // sums in 24 of 32 registers, or 12 of 16
constexpr std::size_t kColumns = kVectors * kLanes;

void tile(std::size_t k, const float* a, const float* b, float* c, std::size_t pitch, bool add) {
  const D d;
  V sums[kRows][kVectors];
  for (auto& row : sums)
    for (V& sum : row) sum = hn::Zero(d);
  for (; k > 0; --k, a += kRows, b += kColumns) {
    const V b0 = hn::LoadU(d, b);
    const V b1 = hn::LoadU(d, b + kLanes);
    for (std::size_t r = 0; r < kRows; ++r) {
      const V value = hn::Set(d, a[r]);
      sums[r][0] = hn::MulAdd(value, b0, sums[r][0]);
      sums[r][1] = hn::MulAdd(value, b1, sums[r][1]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* const out = c + r * pitch + v * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, out), sums[r][v]) : sums[r][v], d, out);
    }
  }
}

float spin(std::size_t iterations, double& operations) {
  constexpr std::size_t kChains = 12;
  const D d;
  const V factor = hn::Set(d, 0.5F);
  const V summand = hn::Set(d, 0.25F + static_cast<float>(iterations % 2));
  V values[kChains];
  for (std::size_t i = 0; i < kChains; ++i) values[i] = hn::Set(d, static_cast<float>(i));
  for (std::size_t n = 0; n < iterations; ++n)
    for (V& value : values) value = hn::MulAdd(value, factor, summand);
  V sum = values[0];
  for (std::size_t i = 1; i < kChains; ++i) sum = hn::Add(sum, values[i]);
  operations = 2.0 * static_cast<double>(kChains * kLanes) * static_cast<double>(iterations);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

GemmKernels choose() { return {kRows, kColumns, tile, spin, hwy::TargetName(HWY_TARGET)}; }

}  // namespace
}  // namespace shard::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shard::bench {

HWY_EXPORT(choose);

GemmKernels gemm_kernels() { return HWY_DYNAMIC_DISPATCH(choose)(); }

}  // namespace shard::bench
#endif
