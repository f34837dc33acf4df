// Vector versions of the strip coder, one for each instruction set that Highway knows, chosen at run time.
//
// Decoding, for a strip of 32 columns, lane = column:
//   unpack   8 residuals of a row at once, stored 8 rows further down for each group to the right
//   skew     lane j of a group is taken j rows further up, in three steps of blends: row t of the result is a
//            diagonal, column c at row t - c
//   predict  diagonal by diagonal; left and corner are the diagonals before, one lane up
//   unskew   the way back
//   store    the last of it, green added to red and blue, interleaved
// Every step is done for the whole strip in memory that stays in the cache.
#include "format/codec/packed_frame.hpp"

// Vectors of unknown length cannot lie in arrays; such CPUs have fixed ones as well.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "format/codec/packed_kernels.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as it must be.
#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "base/system/simd_targets.hpp"
#include "format/codec/packed_bits.hpp"

HWY_BEFORE_NAMESPACE();
namespace shard::packed::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128  // emulated vectors are slower than plain code

Kernels choose_kernels() { return scalar_kernels(); }

#else

namespace hn = hwy::HWY_NAMESPACE;

using D8 = hn::CappedTag<std::uint8_t, kStripColumns>;
using DI8 = hn::RebindToSigned<D8>;
using D64 = hn::Repartition<std::uint64_t, D8>;
using V8 = hn::Vec<D8>;
using M8 = hn::Mask<D8>;
constexpr std::size_t kLanes = hn::MaxLanes(D8());
constexpr std::size_t kParts = kStripColumns / kLanes;
static_assert(kParts * kLanes == kStripColumns && kLanes >= 16);

// A register of the strip: 32 bytes in one vector or two. On NEON a vector has a constructor of its own,
// which an implicit one cannot call: it is not compiled for the target.
struct Row {
  HWY_INLINE Row() {}
  V8 part[kParts];
};

struct RowMask {
  HWY_INLINE RowMask() {}
  M8 part[kParts];
};

HWY_INLINE Row load(const std::uint8_t* in) {
  Row row;
  for (std::size_t p = 0; p < kParts; ++p) row.part[p] = hn::LoadU(D8(), in + p * kLanes);
  return row;
}

HWY_INLINE void store(const Row& row, std::uint8_t* out) {
  for (std::size_t p = 0; p < kParts; ++p) hn::StoreU(row.part[p], D8(), out + p * kLanes);
}

HWY_INLINE Row fill(std::uint8_t value) {
  Row row;
  for (std::size_t p = 0; p < kParts; ++p) row.part[p] = hn::Set(D8(), value);
  return row;
}

// yes where the mask is set.
HWY_INLINE Row blend(const RowMask& mask, const Row& yes, const Row& no) {
  Row row;
  for (std::size_t p = 0; p < kParts; ++p)
    row.part[p] = hn::IfThenElse(mask.part[p], yes.part[p], no.part[p]);
  return row;
}

HWY_INLINE Row add(const Row& a, const Row& b) {
  Row row;
  for (std::size_t p = 0; p < kParts; ++p) row.part[p] = hn::Add(a.part[p], b.part[p]);
  return row;
}

// Lane i takes what lane i - 1 has, lane 0 what `before` has in its last lane.
HWY_INLINE Row lane_up(const Row& row, const Row& before) {
  Row out;
  if constexpr (kParts == 2) {
    out.part[0] = hn::CombineShiftRightBytes<15>(D8(), row.part[0], before.part[1]);
    out.part[1] = hn::CombineShiftRightBytes<15>(D8(), row.part[1], row.part[0]);
  } else {
    const V8 halves = hn::ConcatLowerUpper(D8(), row.part[0], before.part[0]);
    out.part[0] = hn::CombineShiftRightBytes<15>(D8(), row.part[0], halves);
  }
  return out;
}

// The prediction subtracted from `value`, or added to it.
template <bool kAdd>
HWY_INLINE Row predicted(const Row& value, const Row& left, const Row& up, const Row& corner) {
  Row out;
  for (std::size_t p = 0; p < kParts; ++p) {
    const V8 low = hn::Min(left.part[p], up.part[p]);
    const V8 high = hn::Max(left.part[p], up.part[p]);
    const V8 inside = hn::Min(hn::Max(corner.part[p], low), high);
    const V8 sum = hn::Add(left.part[p], up.part[p]);
    out.part[p] =
        kAdd ? hn::Sub(hn::Add(value.part[p], sum), inside) : hn::Add(hn::Sub(value.part[p], sum), inside);
  }
  return out;
}

// Lanes whose number has the bit.
RowMask lanes_with(std::uint8_t bit) {
  alignas(64) std::uint8_t lanes[kStripColumns];
  for (std::size_t i = 0; i < kStripColumns; ++i) lanes[i] = static_cast<std::uint8_t>(i) & bit;
  RowMask mask;
  for (std::size_t p = 0; p < kParts; ++p)
    mask.part[p] = hn::Ne(hn::Load(D8(), lanes + p * kLanes), hn::Zero(D8()));
  return mask;
}

struct SkewMasks {
  RowMask bit0 = lanes_with(1);
  RowMask bit1 = lanes_with(2);
  RowMask bit2 = lanes_with(4);
};

// A group's residuals, of both rows: the two bytes of each value into a lane of 16 bits, moved there so that
// its lowest bit is bit 8.
HWY_INLINE void unpack_group(const std::uint8_t* bits, unsigned code, std::uint8_t* out) {
  const hn::FixedTag<std::uint8_t, 16> d8;
  const hn::FixedTag<std::uint16_t, 8> d16;
  const hn::FixedTag<std::uint8_t, 8> half;
  const LanesOfCode& lanes = kLanesOfCode[code];
  const auto group = hn::LoadU(d8, bits);
  const auto moves = hn::Load(d16, lanes.moves);
  const auto row = [&](const std::uint8_t* bytes) HWY_ATTR {
    const auto pairs = hn::TableLookupBytes(group, hn::Load(d8, bytes));
    return hn::BitCast(d8, hn::Mul(hn::BitCast(d16, pairs), moves));
  };
  const auto values =
      hn::And(hn::ConcatOdd(d8, row(lanes.lower), row(lanes.upper)), hn::Load(d8, lanes.values));
  const auto residuals = hn::Sub(values, hn::Load(d8, lanes.bias));
  hn::StoreU(hn::LowerHalf(half, residuals), half, out);
  hn::StoreU(hn::UpperHalf(half, residuals), half, out + kStripColumns);
}

// 8 values of a group's row are `width` bytes. AVX-512 machines have fast bit instructions.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86_64
HWY_INLINE std::uint64_t gather(std::uint64_t values, unsigned code) {
  return __builtin_ia32_pext_di(values, kBytesOfCode[code].values);
}
#else
HWY_INLINE std::uint64_t gather(std::uint64_t values, unsigned code) { return gather_bits(values, code); }
#endif

constexpr std::size_t kStepRows = 4;  // rows that skewing handles at once

// Rows of 32 bytes: as many as a strip's diagonals, and what the steps before and behind them touch.
constexpr std::size_t buffer_rows(std::size_t row_pairs) { return 2 * row_pairs + 32 + kStepRows; }

// Residuals of row r, group g, to row r + 8 g of the channel's buffer; zeros above and below them.
template <std::uint32_t kChannels>
void unpack(const std::uint8_t* strip, std::size_t row_pairs, std::uint8_t* buffer,
            std::size_t channel_bytes) {
  for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
    std::uint8_t* const begin = buffer + channel * channel_bytes;
    std::memset(begin, 0, 24 * kStripColumns);
    std::memset(begin + 2 * row_pairs * kStripColumns, 0, channel_bytes - 2 * row_pairs * kStripColumns);
  }
  const std::uint8_t* codes = strip + kSeedBytes;
  const std::uint8_t* bits = codes + 2 * kChannels * row_pairs;
  for (std::size_t pair = 0; pair < row_pairs; ++pair) {
    for (std::uint32_t channel = 0; channel < kChannels; ++channel, codes += 2) {
      std::uint8_t* out = buffer + channel * channel_bytes + 2 * pair * kStripColumns;
      unsigned rest = codes[0] | static_cast<unsigned>(codes[1]) << 8;
      for (std::size_t group = 0; group < kGroups; ++group, rest >>= 4) {
        const unsigned code = rest & 15U;
        unpack_group(bits, code, out);
        bits += 2 * kBytesOfCode[code].width;
        out += 8 * kStripColumns + 8;
      }
    }
  }
}

// In place; rows [0, count), a multiple of kStepRows.
void skew(std::uint8_t* rows, std::size_t count, const SkewMasks& masks) {
  Row b3 = fill(0);
  Row s2 = b3;
  Row s3 = b3;
  Row t0 = b3;
  Row t1 = b3;
  Row t2 = b3;
  Row t3 = b3;
  for (std::size_t row = 0; row < count; row += kStepRows) {
    std::uint8_t* const at = rows + row * kStripColumns;
    const Row n0 = load(at);
    const Row n1 = load(at + kStripColumns);
    const Row n2 = load(at + 2 * kStripColumns);
    const Row n3 = load(at + 3 * kStripColumns);
    const Row p0 = blend(masks.bit0, b3, n0);
    const Row p1 = blend(masks.bit0, n0, n1);
    const Row p2 = blend(masks.bit0, n1, n2);
    const Row p3 = blend(masks.bit0, n2, n3);
    b3 = n3;
    const Row q0 = blend(masks.bit1, s2, p0);
    const Row q1 = blend(masks.bit1, s3, p1);
    const Row q2 = blend(masks.bit1, p0, p2);
    const Row q3 = blend(masks.bit1, p1, p3);
    s2 = p2;
    s3 = p3;
    store(blend(masks.bit2, t0, q0), at);
    store(blend(masks.bit2, t1, q1), at + kStripColumns);
    store(blend(masks.bit2, t2, q2), at + 2 * kStripColumns);
    store(blend(masks.bit2, t3, q3), at + 3 * kStripColumns);
    t0 = q0;
    t1 = q1;
    t2 = q2;
    t3 = q3;
  }
}

// The way back, from the last row up.
void unskew(std::uint8_t* rows, std::size_t count, const SkewMasks& masks) {
  Row b0 = fill(0);
  Row s0 = b0;
  Row s1 = b0;
  Row t0 = b0;
  Row t1 = b0;
  Row t2 = b0;
  Row t3 = b0;
  for (std::size_t row = count; row > 0; row -= kStepRows) {
    std::uint8_t* const at = rows + (row - kStepRows) * kStripColumns;
    const Row n0 = load(at);
    const Row n1 = load(at + kStripColumns);
    const Row n2 = load(at + 2 * kStripColumns);
    const Row n3 = load(at + 3 * kStripColumns);
    const Row p0 = blend(masks.bit0, n1, n0);
    const Row p1 = blend(masks.bit0, n2, n1);
    const Row p2 = blend(masks.bit0, n3, n2);
    const Row p3 = blend(masks.bit0, b0, n3);
    b0 = n0;
    const Row q0 = blend(masks.bit1, p2, p0);
    const Row q1 = blend(masks.bit1, p3, p1);
    const Row q2 = blend(masks.bit1, s0, p2);
    const Row q3 = blend(masks.bit1, s1, p3);
    s0 = p0;
    s1 = p1;
    store(blend(masks.bit2, t0, q0), at);
    store(blend(masks.bit2, t1, q1), at + kStripColumns);
    store(blend(masks.bit2, t2, q2), at + 2 * kStripColumns);
    store(blend(masks.bit2, t3, q3), at + 3 * kStripColumns);
    t0 = q0;
    t1 = q1;
    t2 = q2;
    t3 = q3;
  }
}

// Diagonals of residuals become diagonals of coded values. Residuals of 0 outside of the strip keep the seed
// there.
template <std::uint32_t kChannels>
void predict_diagonals(const std::uint8_t* seeds, std::uint8_t* buffer, std::size_t channel_bytes,
                       std::size_t count) {
  Row seed[kChannels];
  Row up[kChannels];
  Row corner[kChannels];
  for (std::uint32_t channel = 0; channel < kChannels; ++channel)
    seed[channel] = up[channel] = corner[channel] = fill(seeds[channel]);
  for (std::size_t row = 0; row < count; ++row) {
    for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
      std::uint8_t* const at = buffer + channel * channel_bytes + row * kStripColumns;
      const Row left = lane_up(up[channel], seed[channel]);
      up[channel] = predicted<true>(load(at), left, up[channel], corner[channel]);
      corner[channel] = left;
      store(up[channel], at);
    }
  }
}

// `pixels` as they lie in a sample, in one piece; fewer columns than 32 go through a buffer.
template <std::uint32_t kChannels>
HWY_INLINE void store_pixels(const Row* row, std::uint8_t* out) {
  for (std::size_t p = 0; p < kParts; ++p, out += kChannels * kLanes) {
    if constexpr (kChannels == 1) {
      hn::StoreU(row[0].part[p], D8(), out);
    } else if constexpr (kChannels == 2) {
      hn::StoreInterleaved2(row[0].part[p], row[1].part[p], D8(), out);
    } else if constexpr (kChannels == 3) {
      hn::StoreInterleaved3(row[0].part[p], row[1].part[p], row[2].part[p], D8(), out);
    } else {
      hn::StoreInterleaved4(row[0].part[p], row[1].part[p], row[2].part[p], row[3].part[p], D8(), out);
    }
  }
}

template <std::uint32_t kChannels>
HWY_INLINE void load_pixels(const std::uint8_t* in, Row* row) {
  for (std::size_t p = 0; p < kParts; ++p, in += kChannels * kLanes) {
    if constexpr (kChannels == 1) {
      row[0].part[p] = hn::LoadU(D8(), in);
    } else if constexpr (kChannels == 2) {
      hn::LoadInterleaved2(D8(), in, row[0].part[p], row[1].part[p]);
    } else if constexpr (kChannels == 3) {
      hn::LoadInterleaved3(D8(), in, row[0].part[p], row[1].part[p], row[2].part[p]);
    } else {
      hn::LoadInterleaved4(D8(), in, row[0].part[p], row[1].part[p], row[2].part[p], row[3].part[p]);
    }
  }
}

template <std::uint32_t kChannels>
void store_rows(const std::uint8_t* buffer, std::size_t channel_bytes,
                const StripPixels<std::uint8_t>& pixels) {
  const RowMask groups01 = lanes_with(8);
  const RowMask groups23 = lanes_with(16);
  const Row half = fill(128);
  const bool planes = pixels.column_stride == 1;
  const bool whole = pixels.columns == kStripColumns;
  for (std::size_t y = 0; y < pixels.height; ++y) {
    Row row[kChannels];
    for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
      const std::uint8_t* const at = buffer + channel * channel_bytes + y * kStripColumns;
      const Row left = blend(groups01, load(at + 8 * kStripColumns), load(at));
      const Row right = blend(groups01, load(at + 24 * kStripColumns), load(at + 16 * kStripColumns));
      row[channel] = blend(groups23, right, left);
    }
    if constexpr (kChannels >= 3) {
      const Row green = add(row[1], half);
      row[0] = add(row[0], green);
      row[2] = add(row[2], green);
    }
    std::uint8_t* const out = pixels.first + y * pixels.row_stride;
    std::uint8_t columns[kChannels * kStripColumns];
    if (planes) {
      for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
        std::uint8_t* const plane = out + channel * pixels.channel_stride;
        if (whole) {
          store(row[channel], plane);
        } else {
          store(row[channel], columns);
          std::memcpy(plane, columns, pixels.columns);
        }
      }
    } else if (whole) {
      store_pixels<kChannels>(row, out);
    } else {
      store_pixels<kChannels>(row, columns);
      std::memcpy(out, columns, kChannels * std::size_t{pixels.columns});
    }
  }
}

template <std::uint32_t kChannels>
void decode_channels(const std::uint8_t* strip, const StripPixels<std::uint8_t>& pixels) {
  const std::size_t row_pairs = (std::size_t{pixels.height} + 1) / 2;
  const std::size_t channel_bytes = buffer_rows(row_pairs) * kStripColumns;
  const std::size_t diagonals = buffer_rows(row_pairs) / kStepRows * kStepRows;
  StripMemory memory(kChannels * channel_bytes);
  std::uint8_t* const buffer = memory.data();
  const SkewMasks masks;
  unpack<kChannels>(strip, row_pairs, buffer, channel_bytes);
  for (std::uint32_t channel = 0; channel < kChannels; ++channel)
    skew(buffer + channel * channel_bytes, diagonals, masks);
  predict_diagonals<kChannels>(strip, buffer, channel_bytes, diagonals);
  for (std::uint32_t channel = 0; channel < kChannels; ++channel)
    unskew(buffer + channel * channel_bytes, diagonals, masks);
  store_rows<kChannels>(buffer, channel_bytes, pixels);
}

// Coded values of row y; columns that are not there: zeros.
template <std::uint32_t kChannels>
HWY_INLINE void load_row(const StripPixels<const std::uint8_t>& pixels, std::size_t y, Row* row) {
  const std::uint8_t* in = pixels.first + y * pixels.row_stride;
  std::uint8_t columns[kChannels * kStripColumns];
  const bool whole = pixels.columns == kStripColumns;
  if (pixels.column_stride == 1) {
    for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
      const std::uint8_t* plane = in + channel * pixels.channel_stride;
      if (!whole) {
        std::memset(columns, 0, kStripColumns);
        std::memcpy(columns, plane, pixels.columns);
        plane = columns;
      }
      row[channel] = load(plane);
    }
  } else {
    if (!whole) {
      std::memset(columns, 0, sizeof columns);
      std::memcpy(columns, in, kChannels * std::size_t{pixels.columns});
      in = columns;
    }
    load_pixels<kChannels>(in, row);
  }
  if constexpr (kChannels >= 3) {
    for (std::size_t p = 0; p < kParts; ++p) {
      const V8 green = hn::Sub(row[1].part[p], hn::Set(D8(), 128));
      row[0].part[p] = hn::Sub(row[0].part[p], green);
      row[2].part[p] = hn::Sub(row[2].part[p], green);
    }
  }
}

// Twice the size of a residual, or one less for those that a code reaches further: 0 -1 1 -2 2 become
// 0 1 2 3 4.
HWY_INLINE V8 folded(V8 residual) {
  const V8 sign = hn::BitCast(D8(), hn::BroadcastSignBit(hn::BitCast(DI8(), residual)));
  return hn::Xor(hn::Add(residual, residual), sign);
}

// The union of 8 bytes in each low byte.
HWY_INLINE V8 united(V8 bytes) {
  auto words = hn::BitCast(D64(), bytes);
  words = hn::Or(words, hn::ShiftRight<32>(words));
  words = hn::Or(words, hn::ShiftRight<16>(words));
  words = hn::Or(words, hn::ShiftRight<8>(words));
  return hn::BitCast(D8(), words);
}

template <std::uint32_t kChannels>
std::size_t encode_channels(const StripPixels<const std::uint8_t>& pixels, std::uint8_t* out) {
  const std::size_t row_pairs = (std::size_t{pixels.height} + 1) / 2;
  std::uint8_t* codes = out + kSeedBytes;
  std::uint8_t* bits = codes + 2 * kChannels * row_pairs;
  alignas(64) std::uint8_t inside[kStripColumns] = {};
  std::memset(inside, 0xff, pixels.columns);
  const Row columns = load(inside);
  Row seed[kChannels];
  Row up[kChannels];
  Row corner[kChannels];
  load_row<kChannels>(pixels, 0, up);
  std::memset(out, 0, kSeedBytes);
  for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
    out[channel] = hn::GetLane(up[channel].part[0]);
    seed[channel] = up[channel] = corner[channel] = fill(out[channel]);
  }
  for (std::size_t pair = 0; pair < row_pairs; ++pair) {
    Row residuals[2][kChannels];
    for (std::size_t odd = 0; odd < 2; ++odd) {
      const bool there = 2 * pair + odd < pixels.height;
      Row row[kChannels];
      if (there) load_row<kChannels>(pixels, 2 * pair + odd, row);
      for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
        if (!there) {
          residuals[odd][channel] = fill(0);
          continue;
        }
        const Row left = lane_up(row[channel], seed[channel]);
        residuals[odd][channel] = predicted<false>(row[channel], left, up[channel], corner[channel]);
        for (std::size_t p = 0; p < kParts; ++p)
          residuals[odd][channel].part[p] = hn::And(residuals[odd][channel].part[p], columns.part[p]);
        up[channel] = row[channel];
        corner[channel] = left;
      }
    }
    for (std::uint32_t channel = 0; channel < kChannels; ++channel, codes += 2) {
      alignas(64) std::uint8_t values[2][kStripColumns];
      alignas(64) std::uint8_t plain[kStripColumns];
      alignas(64) std::uint8_t shifted[kStripColumns];
      for (std::size_t p = 0; p < kParts; ++p) {
        const V8 upper = residuals[0][channel].part[p];
        const V8 lower = residuals[1][channel].part[p];
        const V8 zero = hn::Zero(D8());
        hn::Store(upper, D8(), values[0] + p * kLanes);
        hn::Store(lower, D8(), values[1] + p * kLanes);
        hn::Store(united(hn::Or(folded(upper), folded(lower))), D8(), plain + p * kLanes);
        hn::Store(united(hn::Or(folded(hn::Sub(zero, upper)), folded(hn::Sub(zero, lower)))), D8(),
                  shifted + p * kLanes);
      }
      unsigned chosen = 0;
      for (std::size_t group = 0; group < kGroups; ++group) {
        const unsigned code = choose_code(plain[8 * group], shifted[8 * group]);
        const BytesOfCode& bytes = kBytesOfCode[code];
        chosen |= code << (4 * group);
        for (std::size_t odd = 0; odd < 2; ++odd) {
          std::uint64_t word;
          std::memcpy(&word, values[odd] + 8 * group, 8);
          word = gather((word ^ kHighBits) - bytes.raise, code);
          std::memcpy(bits, &word, 8);
          bits += bytes.width;
        }
      }
      codes[0] = static_cast<std::uint8_t>(chosen);
      codes[1] = static_cast<std::uint8_t>(chosen >> 8);
    }
  }
  return static_cast<std::size_t>(bits - out);
}

std::size_t encode_strip(const StripPixels<const std::uint8_t>& pixels, std::uint8_t* out) {
  if (pixels.channels == 1) return encode_channels<1>(pixels, out);
  if (pixels.channels == 2) return encode_channels<2>(pixels, out);
  if (pixels.channels == 3) return encode_channels<3>(pixels, out);
  return encode_channels<4>(pixels, out);
}

void decode_strip(const std::uint8_t* strip, const StripPixels<std::uint8_t>& pixels) {
  if (pixels.channels == 1) return decode_channels<1>(strip, pixels);
  if (pixels.channels == 2) return decode_channels<2>(strip, pixels);
  if (pixels.channels == 3) return decode_channels<3>(strip, pixels);
  return decode_channels<4>(strip, pixels);
}

Kernels choose_kernels() {
  if constexpr (std::endian::native != std::endian::little) return scalar_kernels();
  return {encode_strip, decode_strip};
}

#endif

}  // namespace
}  // namespace shard::packed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shard::packed {

HWY_EXPORT(choose_kernels);

Kernels best_kernels() { return HWY_DYNAMIC_DISPATCH(choose_kernels)(); }

std::vector<NamedKernels> all_kernels() {
  std::vector<NamedKernels> all{{"reference", scalar_kernels()}};
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    const Kernels kernels = best_kernels();
    if (kernels.decode_strip != scalar_kernels().decode_strip) all.push_back({target, kernels});
  }
  use_simd_target("");
  return all;
}

}  // namespace shard::packed
#endif
