// Vector versions, one for each instruction set that Highway knows.
//
// Sums are int32 modulo 2^32: low + high * 65536 is exact, because the sum itself fits.
#include "transform/exact/exact_kernels.hpp"

// Vectors of unknown length cannot lie in arrays; such CPUs have fixed ones as well.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transform/exact/exact_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as it must be.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "transform/exact/exact_filter.hpp"

HWY_BEFORE_NAMESPACE();
namespace shard::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

ExactKernels choose_exact_kernels() { return scalar_exact_kernels(); }

#else

namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<std::int32_t>;
using DU32 = hn::RebindToUnsigned<D32>;
using D16 = hn::ScalableTag<std::int16_t>;
using DU16 = hn::RebindToUnsigned<D16>;
using D8 = hn::ScalableTag<std::uint8_t>;
using V32 = hn::Vec<D32>;
using V16 = hn::Vec<D16>;
using V8 = hn::Vec<D8>;
constexpr std::size_t kBytes = hn::MaxLanes(D8());
constexpr std::size_t kLanes = kBytes / 4;
constexpr std::size_t kBlocks = kBytes / 16;  // of 128 bits
static_assert(4 * kBlocks <= ExactColumns::kUnitMultiple);

// Sums of low and of high products. The second ones are used on targets whose widening product keeps halves
// apart. There each result is the sum of two lanes, so what rounds it is added at the end, and not where a
// sum begins.
constexpr bool kTwoSums = !HWY_ARCH_X86;

// On NEON a vector has a constructor of its own, which an implicit one cannot call: it is not compiled for
// the target.
struct Sum {
  HWY_INLINE Sum() {}
  V32 low;
  V32 low2;
  V32 high;
  V32 high2;
};

HWY_INLINE Sum start() {
  Sum sum;
  sum.low = hn::Set(D32(), kTwoSums ? 0 : exact::kHalf);
  sum.low2 = sum.high = sum.high2 = hn::Zero(D32());
  return sum;
}

HWY_INLINE void accumulate(V16 values, V16 low, V16 high, Sum& sum) {
  sum.low = hn::ReorderWidenMulAccumulate(D32(), values, low, sum.low, sum.low2);
  sum.high = hn::ReorderWidenMulAccumulate(D32(), values, high, sum.high, sum.high2);
}

HWY_INLINE V32 total(const Sum& sum) {
  const V32 low = hn::RearrangeToOddPlusEven(sum.low, sum.low2);
  const V32 high = hn::RearrangeToOddPlusEven(sum.high, sum.high2);
  V32 sums = hn::Add(low, hn::ShiftLeft<16>(high));
  if constexpr (kTwoSums) sums = hn::Add(sums, hn::Set(D32(), exact::kHalf));
  return hn::ShiftRight<exact::kWeightBits>(sums);
}

// Cuts to bytes; in each 128-bit block 4 lanes of a, then of b, c and d.
HWY_INLINE V8 pack(V32 a, V32 b, V32 c, V32 d) {
  const V16 ab = hn::ReorderDemote2To(D16(), a, b);
  const V16 cd = hn::ReorderDemote2To(D16(), c, d);
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  return V8{_mm512_packus_epi16(ab.raw, cd.raw)};
#elif HWY_TARGET == HWY_AVX2
  return V8{_mm256_packus_epi16(ab.raw, cd.raw)};
#else
  const hn::Half<D8> half;
  return hn::Combine(D8(), hn::DemoteTo(half, cd), hn::DemoteTo(half, ab));
#endif
}

HWY_INLINE V16 weight(std::int32_t pair) { return hn::BitCast(D16(), hn::Set(D32(), pair)); }
HWY_INLINE V16 weights_at(const std::int32_t* pairs) { return hn::BitCast(D16(), hn::LoadU(D32(), pairs)); }

// 16 bytes at in + offsets[b] into block b.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const std::uint8_t* in, const std::size_t* offsets) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::LoadU(d, in + offsets[0]);
  } else {
    const hn::Half<D> half;
    constexpr std::size_t kHalfBlocks = hn::MaxLanes(hn::Half<D>()) / 16;
    return hn::Combine(d, load_blocks(half, in, offsets + kHalfBlocks), load_blocks(half, in, offsets));
  }
}

// The first kCount blocks: block b to out + b * stride, one after the other.
template <std::size_t kCount, class D>
HWY_INLINE void store_blocks(D d, hn::Vec<D> v, std::size_t stride, std::uint8_t* out) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    hn::StoreU(v, d, out);
  } else {
    const hn::Half<D> half;
    constexpr std::size_t kHalf = hn::MaxLanes(hn::Half<D>()) / 16;
    store_blocks<(kCount < kHalf ? kCount : kHalf)>(half, hn::LowerHalf(half, v), stride, out);
    if constexpr (kCount > kHalf)
      store_blocks<kCount - kHalf>(half, hn::UpperHalf(half, v), stride, out + kHalf * stride);
  }
}

// For store_units(): the first `step` bytes of each unit, side by side in each block.
HWY_INLINE V8 closing_table(std::uint32_t step) {
  alignas(16) std::uint8_t table[16] = {};
  for (std::uint32_t i = 0; i < 4 * step; ++i)
    table[i] = static_cast<std::uint8_t>(i / step * ExactColumns::kUnit + i % step);
  return hn::LoadDup128(D8(), table);
}

// The units of kVectors vectors, block b of vector v being unit v * kBlocks + b. What is stored after them
// (less than 16 bytes) is arbitrary.
template <std::size_t kVectors>
HWY_INLINE void store_units(const Sum (&sums)[kVectors], V8 closing, std::size_t step, std::uint8_t* out) {
  const V32 first = total(sums[0]);
  const V32 second = kVectors > 1 ? total(sums[kVectors - 1]) : first;
  V8 bytes = pack(first, second, first, second);
  if constexpr (kBlocks > 1) {
    alignas(64) std::uint32_t lanes[4 * kBlocks];
    for (std::uint32_t unit = 0; unit < 4 * kBlocks; ++unit)
      lanes[unit] = unit % kBlocks * 4 + unit / kBlocks;
    const DU32 d32;
    bytes = hn::BitCast(D8(), hn::TableLookupLanes(hn::BitCast(d32, bytes), hn::SetTableIndices(d32, lanes)));
  }
  constexpr std::size_t kStored = kVectors * kBlocks / 4;
  store_blocks<(kStored > 1 ? kStored : 1)>(D8(), hn::TableLookupBytes(bytes, closing), 4 * step, out);
}

// kPairs pairs: the weights of kVectors vectors stay in registers for all rows.
template <std::size_t kPairs, std::size_t kVectors>
void columns_of(const ExactColumns& plan, const std::uint8_t* const* rows, const std::uint8_t* const* soon,
                std::size_t count, std::uint8_t* const* outs) {
  static_assert(kVectors <= 2);
  constexpr std::size_t kUnits = kVectors * kBlocks;
  const std::size_t lanes = plan.lanes();
  const std::size_t pair_bytes = std::size_t{2} * plan.channels;
  const std::size_t step = plan.step;
  const V8 closing = closing_table(plan.step);
  for (std::size_t unit = 0; unit < plan.units; unit += kUnits) {
    std::size_t offsets[kUnits];
    for (std::size_t u = 0; u < kUnits; ++u) offsets[u] = plan.offsets[unit + u];
    V8 shuffles[kVectors];
    V16 low[kPairs][kVectors];
    V16 high[kPairs][kVectors];
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t first = unit + v * kBlocks;
      shuffles[v] = hn::LoadU(D8(), plan.shuffles.data() + first * 16);
      HWY_UNROLL(4)
      for (std::size_t k = 0; k < kPairs; ++k) {
        const std::size_t lane = k * lanes + first * ExactColumns::kUnit;
        low[k][v] = weights_at(plan.low.data() + lane);
        high[k][v] = weights_at(plan.high.data() + lane);
      }
    }
    for (std::size_t r = 0; r < count; ++r) {
      const std::uint8_t* const row = rows[r];
      hwy::Prefetch(soon[r] + offsets[0]);
      Sum sums[kVectors];
      HWY_UNROLL(2)
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[v] = start();
        HWY_UNROLL(4)
        for (std::size_t k = 0; k < kPairs; ++k) {
          const V8 bytes = hn::TableLookupBytesOr0(
              load_blocks(D8(), row + k * pair_bytes, offsets + v * kBlocks), shuffles[v]);
          accumulate(hn::BitCast(D16(), bytes), low[k][v], high[k][v], sums[v]);
        }
      }
      store_units(sums, closing, step, outs[r] + unit * step);
    }
  }
}

// Any number of pairs.
void columns_any(const ExactColumns& plan, const std::uint8_t* const* rows, const std::uint8_t* const* soon,
                 std::size_t count, std::uint8_t* const* outs) {
  constexpr std::size_t kUnits = 2 * kBlocks;
  const std::size_t lanes = plan.lanes();
  const std::size_t pair_bytes = std::size_t{2} * plan.channels;
  const std::size_t step = plan.step;
  const std::size_t pairs = plan.pairs;
  const V8 closing = closing_table(plan.step);
  for (std::size_t unit = 0; unit < plan.units; unit += kUnits) {
    std::size_t offsets[kUnits];
    for (std::size_t u = 0; u < kUnits; ++u) offsets[u] = plan.offsets[unit + u];
    const V8 shuffle0 = hn::LoadU(D8(), plan.shuffles.data() + unit * 16);
    const V8 shuffle1 = hn::LoadU(D8(), plan.shuffles.data() + (unit + kBlocks) * 16);
    for (std::size_t r = 0; r < count; ++r) {
      const std::uint8_t* row = rows[r];
      hwy::Prefetch(soon[r] + offsets[0]);
      const std::int32_t* low = plan.low.data() + unit * ExactColumns::kUnit;
      const std::int32_t* high = plan.high.data() + unit * ExactColumns::kUnit;
      Sum sums[2] = {start(), start()};
      for (std::size_t k = 0; k < pairs; ++k, row += pair_bytes, low += lanes, high += lanes) {
        const V8 bytes0 = hn::TableLookupBytesOr0(load_blocks(D8(), row, offsets), shuffle0);
        const V8 bytes1 = hn::TableLookupBytesOr0(load_blocks(D8(), row, offsets + kBlocks), shuffle1);
        accumulate(hn::BitCast(D16(), bytes0), weights_at(low), weights_at(high), sums[0]);
        accumulate(hn::BitCast(D16(), bytes1), weights_at(low + kLanes), weights_at(high + kLanes), sums[1]);
      }
      store_units(sums, closing, step, outs[r] + unit * step);
    }
  }
}

void columns(const ExactColumns& plan, const std::uint8_t* const* rows, const std::uint8_t* const* soon,
             std::size_t count, std::uint8_t* const* outs) {
  if (plan.pairs == 1) return columns_of<1, 2>(plan, rows, soon, count, outs);
  if (plan.pairs == 2) return columns_of<2, 2>(plan, rows, soon, count, outs);
  if (plan.pairs == 3) return columns_of<3, 1>(plan, rows, soon, count, outs);
  columns_any(plan, rows, soon, count, outs);
}

// As many bytes as a vector has, from `x` on.
template <std::size_t kPairs>
HWY_INLINE V8 rows_part(const std::uint8_t* const* rows, const ExactPair* weights, std::size_t pairs,
                        std::size_t x) {
  const DU16 d16;
  const auto mask = hn::Set(d16, 0xFF);
  // Even and odd bytes of the lower half of each block, then of the upper one.
  Sum sums[4] = {start(), start(), start(), start()};
  const std::size_t count = kPairs != 0 ? kPairs : pairs;
  HWY_UNROLL(2)
  for (std::size_t k = 0; k < count; ++k) {
    const V16 low = weight(weights[k].low);
    const V16 high = weight(weights[k].high);
    const auto first = hn::BitCast(d16, hn::LoadU(D8(), rows[2 * k] + x));
    const auto second = hn::BitCast(d16, hn::LoadU(D8(), rows[2 * k + 1] + x));
    const auto lower = hn::InterleaveLower(d16, first, second);
    const auto upper = hn::InterleaveUpper(d16, first, second);
    accumulate(hn::BitCast(D16(), hn::And(lower, mask)), low, high, sums[0]);
    accumulate(hn::BitCast(D16(), hn::ShiftRight<8>(lower)), low, high, sums[1]);
    accumulate(hn::BitCast(D16(), hn::And(upper, mask)), low, high, sums[2]);
    accumulate(hn::BitCast(D16(), hn::ShiftRight<8>(upper)), low, high, sums[3]);
  }
  alignas(16) static constexpr std::uint8_t kInOrder[16] = {0, 4,  1, 5,  2,  6,  3,  7,
                                                            8, 12, 9, 13, 10, 14, 11, 15};
  return hn::TableLookupBytes(pack(total(sums[0]), total(sums[1]), total(sums[2]), total(sums[3])),
                              hn::LoadDup128(D8(), kInOrder));
}

template <std::size_t kPairs>
void rows_of(const std::uint8_t* const* rows, const ExactPair* weights, std::size_t pairs, std::size_t n,
             std::uint8_t* out) {
  if (n < kBytes) return scalar_exact_kernels().rows(rows, weights, pairs, n, out);
  std::size_t x = 0;
  for (; x + kBytes <= n; x += kBytes) hn::StoreU(rows_part<kPairs>(rows, weights, pairs, x), D8(), out + x);
  if (x < n) hn::StoreU(rows_part<kPairs>(rows, weights, pairs, n - kBytes), D8(), out + n - kBytes);
}

void rows(const std::uint8_t* const* rows, const ExactPair* weights, std::size_t pairs, std::size_t n,
          std::uint8_t* out) {
  if (pairs == 1) return rows_of<1>(rows, weights, pairs, n, out);
  if (pairs == 2) return rows_of<2>(rows, weights, pairs, n, out);
  rows_of<0>(rows, weights, pairs, n, out);
}

ExactKernels choose_exact_kernels() { return {columns, rows}; }

#endif

}  // namespace
}  // namespace shard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shard {

HWY_EXPORT(choose_exact_kernels);

ExactKernels exact_kernels() { return HWY_DYNAMIC_DISPATCH(choose_exact_kernels)(); }

}  // namespace shard
#endif
