// Vector versions of the two passes, one for each instruction set that Highway knows, chosen at run time.
//
// Both passes sum products of 8-bit values and 16-bit halves of the coefficients, two taps at a time
// (pmaddwd), in 32 bits modulo 2^32: sum = low + high * 65536 is exact. Rounding and clipping are Pillow's.
//
// Horizontal: lanes are rows. Batches of as many rows as a vector has 32-bit lanes are transposed, 4 pixels
// at a time, into columns of pixel pairs, so every output is the same few multiplications for all rows and
// channels, without gathers:
//
//   rows: r0 g0 b0 r1 g1 b1 ...  ->  tile: [pair][channel][row] of (int16 even pixel, int16 odd pixel)
//                                ->  sums: [byte column][row] int32
//                                ->  pair rows (resample_kernels.hpp)
// Vertical: lanes are byte columns; a pair row holds the two rows' bytes side by side.
#include "image/resample/resample_kernels.hpp"

// Vectors of unknown length cannot lie in arrays; such CPUs have fixed ones as well.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/resample/resample_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as it must be.
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace shard::image::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

ResampleKernels choose_resample_kernels() { return scalar_resample_kernels(); }

#else

namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<std::int32_t>;
using DU32 = hn::RebindToUnsigned<D32>;
using DU64 = hn::ScalableTag<std::uint64_t>;
using D16 = hn::ScalableTag<std::int16_t>;
using D8 = hn::ScalableTag<std::uint8_t>;
using V32 = hn::Vec<D32>;
using VU32 = hn::Vec<DU32>;
using V16 = hn::Vec<D16>;
using V8 = hn::Vec<D8>;

constexpr std::size_t kRows = hn::MaxLanes(D32());  // of a batch
constexpr std::size_t kBlocks = kRows / 4;          // 128-bit blocks of a vector
constexpr std::size_t kPairLanes = 3 * kRows;       // int32 of a pixel pair in a tile
constexpr std::size_t kChunkPairs = 2;              // pixel pairs transposed at once: 12 bytes of a row
constexpr std::size_t kGroupPixels = 8;             // outputs packed at once
constexpr std::uint32_t kMinTilePairs = 128;
static_assert(kRows <= kMaxBatchRows);

// Sums of low and high products. The second ones are used on targets whose widening product keeps halves
// apart. There each result is the sum of two lanes, so what rounds it is added at the end, and not where a
// sum begins.
constexpr bool kTwoSums = !HWY_ARCH_X86;
constexpr std::int32_t kHalf = 1 << (kPrecisionBits - 1);

struct Sum {
  V32 low;
  V32 low2;
  V32 high;
  V32 high2;
};

HWY_INLINE Sum start() {
  const V32 zero = hn::Zero(D32());
  return {hn::Set(D32(), kTwoSums ? 0 : kHalf), zero, zero, zero};
}

HWY_INLINE void accumulate(VU32 pairs, V16 low, V16 high, Sum& sum) {
  const V16 values = hn::BitCast(D16(), pairs);
  sum.low = hn::ReorderWidenMulAccumulate(D32(), values, low, sum.low, sum.low2);
  sum.high = hn::ReorderWidenMulAccumulate(D32(), values, high, sum.high, sum.high2);
}

HWY_INLINE V32 total(const Sum& sum) {
  const V32 low = hn::RearrangeToOddPlusEven(sum.low, sum.low2);
  const V32 high = hn::RearrangeToOddPlusEven(sum.high, sum.high2);
  V32 sums = hn::Add(low, hn::ShiftLeft<16>(high));
  if constexpr (kTwoSums) sums = hn::Add(sums, hn::Set(D32(), kHalf));
  return hn::ShiftRight<kPrecisionBits>(sums);
}

HWY_INLINE V16 weight(std::int32_t pair) { return hn::BitCast(D16(), hn::Set(D32(), pair)); }

// Clips to bytes; in each 128-bit block 4 lanes of a, then of b, c and d.
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

template <class D>
HWY_INLINE hn::Vec<D8> block_table(D d, const std::uint8_t (&indices)[16]) {
  return hn::LoadDup128(d, indices);
}

// Row 4 b + `row` of the batch into block b.
template <class D>
HWY_INLINE hn::Vec<D> load_rows(D d, const std::uint8_t* const* rows, std::size_t offset) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::LoadU(d, rows[0] + offset);
  } else {
    const hn::Half<D> half;
    constexpr std::size_t kHalfRows = hn::MaxLanes(hn::Half<D>()) / 4;
    return hn::Combine(d, load_rows(half, rows + kHalfRows, offset), load_rows(half, rows, offset));
  }
}

// Block b to outs[b].
template <class D>
HWY_INLINE void store_blocks(D d, hn::Vec<D> v, std::uint8_t* const* outs, std::size_t stride,
                             std::size_t offset) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    hn::StoreU(v, d, outs[0] + offset);
  } else {
    const hn::Half<D> half;
    constexpr std::size_t kHalfBlocks = hn::MaxLanes(hn::Half<D>()) / 16;
    store_blocks(half, hn::LowerHalf(half, v), outs, stride, offset);
    store_blocks(half, hn::UpperHalf(half, v), outs + kHalfBlocks * stride, stride, offset);
  }
}

// Two pixel pairs (12 of 16 bytes at `offset`) of all rows into the tile.
HWY_INLINE void transpose_chunk(const std::uint8_t* const* rows, std::size_t offset, std::int32_t* tile) {
  // [r0 g0 r1 g1][b0 r2 b1 r3][g2 b2 g3 b3]: even bytes of a word are one pair, odd bytes the next.
  alignas(16) static constexpr std::uint8_t kPairs[16] = {0, 1, 3, 4, 2, 6, 5, 9, 7, 8, 10, 11, 0, 0, 0, 0};
  const D8 d8;
  const DU32 d32;
  const DU64 d64;
  const V8 table = block_table(d8, kPairs);
  const auto load = [&](std::size_t row) HWY_ATTR {
    return hn::BitCast(d32, hn::TableLookupBytes(load_rows(d8, rows + row, offset), table));
  };
  const VU32 row0 = load(0);
  const VU32 row1 = load(1);
  const VU32 row2 = load(2);
  const VU32 row3 = load(3);
  const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d32, row0, row1));
  const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d32, row2, row3));
  const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d32, row0, row1));
  const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d32, row2, row3));
  const VU32 words[3] = {hn::BitCast(d32, hn::InterleaveLower(d64, low01, low23)),
                         hn::BitCast(d32, hn::InterleaveUpper(d64, low01, low23)),
                         hn::BitCast(d32, hn::InterleaveLower(d64, high01, high23))};
  const VU32 mask = hn::Set(d32, 0x00FF00FFU);
  auto* out = reinterpret_cast<std::uint32_t*>(tile);
  for (const VU32& word : words) {
    hn::Store(hn::And(word, mask), d32, out);
    hn::Store(hn::And(hn::ShiftRight<8>(word), mask), d32, out + kRows);
    out += 2 * kRows;
  }
}

// Pairs [first, first + count) into the tile; `count` is a multiple of kChunkPairs. Past the row's end:
// zeros.
void load_tile(const std::uint8_t* const* rows, std::size_t row_bytes, std::size_t first, std::size_t count,
               std::int32_t* tile) {
  for (std::size_t pair = 0; pair < count; pair += kChunkPairs, tile += kChunkPairs * kPairLanes) {
    const std::size_t offset = (first + pair) * 6;
    if (offset + 16 <= row_bytes) {
      transpose_chunk(rows, offset, tile);
      continue;
    }
    std::uint8_t ends[kRows][16] = {};
    const std::uint8_t* end_rows[kRows];
    for (std::size_t row = 0; row < kRows; ++row) {
      if (offset < row_bytes) std::memcpy(ends[row], rows[row] + offset, row_bytes - offset);
      end_rows[row] = ends[row];
    }
    transpose_chunk(end_rows, 0, tile);
  }
}

// Sums of 8 byte columns, [column][row] -> 16 bytes of each pair row.
HWY_INLINE void store_columns(const std::int32_t* sums, std::uint8_t* const* pair_rows, std::size_t offset) {
  // Four columns of rows 0 to 3 -> rows 0 and 1 as resample_kernels.hpp says, then rows 2 and 3.
  alignas(16) static constexpr std::uint8_t kRowPairs[16] = {0, 4, 1, 5, 8,  12, 9,  13,
                                                             2, 6, 3, 7, 10, 14, 11, 15};
  const D8 d8;
  const DU64 d64;
  const V8 table = block_table(d8, kRowPairs);
  const auto load = [&](std::size_t column) HWY_ATTR { return hn::Load(D32(), sums + column * kRows); };
  const auto left = hn::BitCast(d64, hn::TableLookupBytes(pack(load(0), load(1), load(2), load(3)), table));
  const auto right = hn::BitCast(d64, hn::TableLookupBytes(pack(load(4), load(5), load(6), load(7)), table));
  store_blocks(d8, hn::BitCast(d8, hn::InterleaveLower(d64, left, right)), pair_rows, 2, offset);
  store_blocks(d8, hn::BitCast(d8, hn::InterleaveUpper(d64, left, right)), pair_rows + 1, 2, offset);
}

std::uint32_t tile_pairs(const AxisPlan& plan) {
  const std::uint32_t pairs = std::min(4 * plan.max_pairs, plan.max_pairs + 4096);
  return (std::max(kMinTilePairs, pairs) + 1) / 2 * 2 + 2;
}

std::size_t scratch_bytes(const AxisPlan& plan) {
  return (tile_pairs(plan) * kPairLanes + kGroupPixels * kPairLanes) * sizeof(std::int32_t);
}

void horizontal(const AxisPlan& plan, const std::uint8_t* const* rows, std::size_t row_bytes,
                std::byte* scratch, std::uint8_t* const* pair_rows) {
  auto* const tile = reinterpret_cast<std::int32_t*>(scratch);
  const std::size_t in_tile = tile_pairs(plan);
  std::int32_t* const sums = tile + in_tile * kPairLanes;
  const std::size_t width_pairs = (row_bytes / 3 + 1) / 2;
  std::size_t tile_begin = 0;
  std::size_t tile_end = 0;
  const std::size_t outputs = plan.outputs.size();
  for (std::size_t group = 0; group < outputs; group += kGroupPixels) {
    const std::size_t group_end = std::min(group + kGroupPixels, outputs);
    std::int32_t* sum_out = sums;
    for (std::size_t x = group; x < group_end; ++x, sum_out += kPairLanes) {
      const AxisPlan::Output& output = plan.outputs[x];
      if (output.first_pair < tile_begin || output.first_pair + output.pair_count > tile_end) {
        tile_begin = output.first_pair;
        const std::size_t count = std::min(in_tile, (width_pairs - tile_begin + 1) / 2 * 2);
        load_tile(rows, row_bytes, tile_begin, count, tile);
        tile_end = tile_begin + count;
      }
      const std::int32_t* weights = plan.weights.data() + output.first_weight;
      const auto* in =
          reinterpret_cast<const std::uint32_t*>(tile + (output.first_pair - tile_begin) * kPairLanes);
      Sum red = start();
      Sum green = start();
      Sum blue = start();
      for (std::uint32_t pair = 0; pair < output.pair_count; ++pair, weights += 2, in += kPairLanes) {
        const V16 low = weight(weights[0]);
        const V16 high = weight(weights[1]);
        accumulate(hn::Load(DU32(), in), low, high, red);
        accumulate(hn::Load(DU32(), in + kRows), low, high, green);
        accumulate(hn::Load(DU32(), in + 2 * kRows), low, high, blue);
      }
      hn::Store(total(red), D32(), sum_out);
      hn::Store(total(green), D32(), sum_out + kRows);
      hn::Store(total(blue), D32(), sum_out + 2 * kRows);
    }
    // Groups are 24 byte columns, 48 bytes of a pair row; in the last one some columns may be left from the
    // one before.
    for (std::size_t part = 0; part < 3; ++part) {
      store_columns(sums + part * 8 * kRows, pair_rows, group * 6 + part * 16);
    }
  }
}

// As many output bytes as a vector has, from column `column` on.
HWY_INLINE V8 vertical_part(const AxisPlan::Output& output, const std::int32_t* weights,
                            const std::uint8_t* const* pair_rows, std::size_t column) {
  const D8 d8;
  const DU32 d32;
  const VU32 mask = hn::Set(d32, 0x00FF00FFU);
  constexpr std::size_t kBytes = 4 * kRows;
  // Even and odd columns of the left half, then of the right one.
  Sum sums[4] = {start(), start(), start(), start()};
  for (std::uint32_t pair = 0; pair < output.pair_count; ++pair, weights += 2) {
    const V16 low = weight(weights[0]);
    const V16 high = weight(weights[1]);
    const std::uint8_t* const in = pair_rows[pair] + 2 * column;
    const VU32 left = hn::BitCast(d32, hn::LoadU(d8, in));
    const VU32 right = hn::BitCast(d32, hn::LoadU(d8, in + kBytes));
    accumulate(hn::And(left, mask), low, high, sums[0]);
    accumulate(hn::And(hn::ShiftRight<8>(left), mask), low, high, sums[1]);
    accumulate(hn::And(right, mask), low, high, sums[2]);
    accumulate(hn::And(hn::ShiftRight<8>(right), mask), low, high, sums[3]);
  }
  // In each block: even, odd columns of the left half, then of the right one.
  alignas(16) static constexpr std::uint8_t kColumns[16] = {0, 4,  1, 5,  2,  6,  3,  7,
                                                            8, 12, 9, 13, 10, 14, 11, 15};
  const V8 packed = hn::TableLookupBytes(pack(total(sums[0]), total(sums[1]), total(sums[2]), total(sums[3])),
                                         block_table(d8, kColumns));
  if constexpr (kBlocks == 1) return packed;
  // The left halves of all blocks, then the right ones.
  const DU64 d64;
  alignas(64) std::uint64_t order[8] = {};
  for (std::size_t i = 0; i < kBlocks; ++i) {
    order[i] = 2 * i;
    order[kBlocks + i] = 2 * i + 1;
  }
  return hn::BitCast(d8, hn::TableLookupLanes(hn::BitCast(d64, packed), hn::SetTableIndices(d64, order)));
}

void vertical(const AxisPlan& plan, std::uint32_t y, const std::uint8_t* const* pair_rows,
              std::size_t columns, std::uint8_t* out) {
  const D8 d8;
  constexpr std::size_t kBytes = 4 * kRows;
  const AxisPlan::Output& output = plan.outputs[y];
  const std::int32_t* const weights = plan.weights.data() + output.first_weight;
  std::size_t column = 0;
  for (; column + kBytes <= columns; column += kBytes) {
    hn::StoreU(vertical_part(output, weights, pair_rows, column), d8, out + column);
  }
  if (column < columns) {
    alignas(64) std::uint8_t end[kBytes];
    hn::Store(vertical_part(output, weights, pair_rows, column), d8, end);
    std::memcpy(out + column, end, columns - column);
  }
}

ResampleKernels choose_resample_kernels() { return {kRows, scratch_bytes, horizontal, vertical}; }

#endif

}  // namespace
}  // namespace shard::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shard::image {

HWY_EXPORT(choose_resample_kernels);

ResampleKernels resample_kernels() { return HWY_DYNAMIC_DISPATCH(choose_resample_kernels)(); }

}  // namespace shard::image
#endif
