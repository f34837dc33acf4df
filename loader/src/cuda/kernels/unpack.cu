// Codec packed (docs/format.md): a warp takes a strip of a sample, each lane one of its 32 columns.
//
// Strips are decoded 32 rows at a time, in a ring of 64 rows in shared memory that holds one word a pixel (a
// byte a channel):
//   1. residuals  groups are spread from bits to bytes, in parallel: where each begins is a prefix sum of the
//                 widths before it
//   2. pixels     along diagonals: at step t lane c predicts row t - c from what its left neighbour made at
//                 the step before, and puts the pixel where the residual was
//   3. values     rows that all lanes have passed are delivered, neighbouring lanes to neighbouring elements
//
// A frame may be hostile: its table and widths are checked, and no load leaves the strip, whatever they
// state. All strips of a frame are checked, even those that no box needs, so that the verdict is the same as
// on the host.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/launch.cuh"

namespace shard::gpu {

namespace {

constexpr std::uint32_t kWarps = 4;  // of a block
constexpr std::uint32_t kAll = 0xFFFFFFFF;
constexpr std::uint32_t kColumns = packed::kStripColumns;
constexpr std::uint32_t kChunkRows = 32;
constexpr std::uint32_t kChunkPairs = kChunkRows / 2;
constexpr std::uint32_t kRingRows = 2 * kChunkRows;
constexpr std::uint32_t kBytes = 0x00010001;   // in each half
constexpr std::uint32_t kLow = 0x00FF00FF;     // the lower byte of each half
constexpr std::uint32_t kOffset = 0x00800080;  // 128 in each half
static_assert(kColumns == kWarp && packed::kGroups == 4 && packed::kGroupColumns == 8);

// Loads of frames go first from the L2 cache (launch.cuh), but are kept in the nearest one: neighbours in a
// warp and the next rows read the same lines.
__device__ std::uint64_t streaming_policy() {
  std::uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}

// A strip of a frame whose place in the frame is right; 16-byte aligned.
struct Strip {
  const std::uint32_t* words = nullptr;
  std::uint32_t units = 0;  // of 16 bytes
  std::uint64_t policy = 0;

  // A word of the strip; an index beyond its end is the last one.
  __device__ std::uint32_t word(std::uint32_t i) const {
    const std::uint32_t* const at = words + min(i, 4 * units - 1);
#if __CUDA_ARCH__ >= 800
    std::uint32_t value;
    asm("ld.global.nc.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(value) : "l"(at), "l"(policy));
    return value;
#else
    return __ldg(at);
#endif
  }
  // The code bytes of a pair of rows and channel, which lie inside the strip.
  __device__ std::uint32_t codes(std::uint32_t i) const {
    const std::uint16_t* const at =
        reinterpret_cast<const std::uint16_t*>(words) + packed::kSeedBytes / 2 + i;
#if __CUDA_ARCH__ >= 800
    std::uint16_t value;
    asm("ld.global.nc.L2::cache_hint.u16 %0, [%1], %2;" : "=h"(value) : "l"(at), "l"(policy));
    return value;
#else
    return __ldg(at);
#endif
  }
};

constexpr std::uint32_t kMostUnits = std::uint32_t{1} << 24;  // more than a strip can have
__device__ std::uint32_t units_of(std::uint32_t bytes) { return (bytes + 15) / packed::kAlignment; }

// Where the groups begin in a strip, behind its seeds and codes.
__device__ std::uint32_t bits_begin(const Unpacking& frames) {
  return packed::kSeedBytes + frames.code_bytes;
}

// Checks the header and the table of strips, without the codes. False: the frame is not valid.
template <std::uint32_t kChannels>
__device__ bool find_strip(const SampleRecord& record, const Unpacking& frames, std::uint32_t index,
                           bool& stored, Strip& strip) {
  if (record.frame_units == 0) return false;
  const uint4 head = __ldg(reinterpret_cast<const uint4*>(record.source));
  const std::uint32_t mode = head.x >> 8 & 0xFF;
  if ((head.x & 0xFF) != packed::kVersion || head.x >> 16 != kChannels ||
      head.y != (frames.height | frames.width << 16))
    return false;
  stored = mode == packed::kStored;
  if (stored) return record.frame_units == frames.stored_units;
  if (mode != packed::kPacked || record.frame_units < frames.first_unit) return false;
  const auto* const ends = reinterpret_cast<const std::uint32_t*>(record.source) + packed::kHeaderBytes / 4;
  const std::uint32_t begin = index == 0 ? frames.first_unit : __ldg(ends + index - 1);
  const std::uint32_t end = __ldg(ends + index);
  if (begin < frames.first_unit || end < begin || end > record.frame_units) return false;
  if (index + 1 == frames.strips && end != record.frame_units) return false;
  strip.words = reinterpret_cast<const std::uint32_t*>(record.source) + std::uint64_t{begin} * 4;
  strip.units = end - begin;
  strip.policy = streaming_policy();
  return strip.units >= units_of(bits_begin(frames)) && strip.units <= kMostUnits;
}

// Each half-byte a code -> each half-byte its width.
__device__ std::uint32_t widths_of(std::uint32_t codes) {
  const std::uint32_t low = codes & 0x77777777;
  const std::uint32_t not_eight = (low + 0x77777777) & 0x88888888;
  return low | (codes & 0x88888888 & ~not_eight);
}
__device__ std::uint32_t sum_of(std::uint32_t half_bytes) {
  const std::uint32_t bytes = (half_bytes & 0x0F0F0F0F) + (half_bytes >> 4 & 0x0F0F0F0F);
  return bytes * 0x01010101 >> 24;
}

// 4 values of `width` bits -> 4 bytes: residual + 128.
struct Spread {
  std::uint32_t width;
  std::uint32_t pairs;  // masks, in both halves: of 2 values,
  std::uint32_t ones;   // of one
  std::uint32_t set;    // residual + 128 = (value | set) - bias, without a borrow
  std::uint32_t bias;
  __device__ explicit Spread(std::uint32_t code, std::uint32_t code_width) : width(code_width) {
    pairs = ((1U << 2 * width) - 1) * kBytes;
    ones = ((1U << width) - 1) * kBytes;
    const std::uint32_t half = 1U << width >> 1;  // width 8: value - 128 + 128
    set = width < 8 ? 0x80808080 : 0;
    bias = width < 8 && width > 0 ? (half - (code > 8 ? 1 : 0)) * 0x01010101 : 0;
  }
  __device__ std::uint32_t operator()(std::uint32_t bits) const {
    const std::uint32_t two = __byte_perm(bits, bits >> 2 * width, 0x5410) & pairs;
    const std::uint32_t four = (two & ones) | (two << (8 - width) & ones << 8);
    return (four | set) - bias;
  }
};

// 8 bytes from any address.
__device__ void load_8(const Strip& strip, std::uint32_t at, std::uint32_t& low, std::uint32_t& high) {
  const std::uint32_t i = at / 4;
  const std::uint32_t shift = at % 4 * 8;
  const std::uint32_t middle = strip.word(i + 1);
  low = __funnelshift_r(strip.word(i), middle, shift);
  high = __funnelshift_r(middle, strip.word(i + 2), shift);
}

__device__ uint4 pixels_of(const std::uint32_t (&channels)[4]) {
  const auto pixel = [&](std::uint32_t i) {
    const std::uint32_t select = i | (4 + i) << 4;
    return __byte_perm(__byte_perm(channels[0], channels[1], select),
                       __byte_perm(channels[2], channels[3], select), 0x5410);
  };
  return make_uint4(pixel(0), pixel(1), pixel(2), pixel(3));
}

// Codes of up to four channels of a pair of rows, half a byte a group.
struct PairCodes {
  std::uint32_t low = 0;   // channels 0 and 1
  std::uint32_t high = 0;  // channels 2 and 3
  __device__ std::uint32_t widths() const { return sum_of(widths_of(low)) + sum_of(widths_of(high)); }
};

template <std::uint32_t kChannels>
__device__ PairCodes pair_codes(const Strip& strip, std::uint32_t pair) {
  PairCodes codes;
  codes.low = strip.codes(pair * kChannels);
  if constexpr (kChannels > 1) codes.low |= strip.codes(pair * kChannels + 1) << 16;
  if constexpr (kChannels > 2) codes.high = strip.codes(pair * kChannels + 2);
  if constexpr (kChannels > 3) codes.high |= strip.codes(pair * kChannels + 3) << 16;
  return codes;
}

// Step 1 for the 16 pairs of rows from `first` on, the first group of which begins `at` units of 2 bytes
// behind the codes; returns where the next one begins.
template <std::uint32_t kChannels>
__device__ std::uint32_t spread_residuals(const Strip& strip, const Unpacking& frames, std::uint32_t first,
                                          std::uint32_t at, std::uint32_t* ring) {
  const std::uint32_t lane = threadIdx.x % kWarp;
  PairCodes mine;  // of pair `first + lane`
  if (lane < kChunkPairs && first + lane < frames.pairs) mine = pair_codes<kChannels>(strip, first + lane);
  const std::uint32_t widths = mine.widths();
  std::uint32_t sum = widths;
#pragma unroll
  for (std::uint32_t step = 1; step < kChunkPairs; step *= 2) {
    const std::uint32_t before = __shfl_up_sync(kAll, sum, step);
    if (lane >= step) sum += before;
  }
  const std::uint32_t begin = at + sum - widths;
  const std::uint32_t group = lane % 4;
#pragma unroll
  for (std::uint32_t half = 0; half < 2; ++half) {
    const std::uint32_t source = half * 8 + lane / 4;
    std::uint32_t offset = __shfl_sync(kAll, begin, source);
    const PairCodes codes{__shfl_sync(kAll, mine.low, source), __shfl_sync(kAll, mine.high, source)};
    if (first + source >= frames.pairs) continue;
    std::uint32_t bytes[4][4] = {};  // [quarter: row, columns][channel]
#pragma unroll
    for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
      const std::uint32_t four = (channel < 2 ? codes.low : codes.high) >> channel % 2 * 16 & 0xFFFF;
      const std::uint32_t four_widths = widths_of(four);
      const std::uint32_t width = four_widths >> 4 * group & 15;
      const Spread spread(four >> 4 * group & 15, width);
      const std::uint32_t place =
          bits_begin(frames) + 2 * (offset + sum_of(four_widths & ((1U << 4 * group) - 1)));
      offset += sum_of(four_widths);
#pragma unroll
      for (std::uint32_t row = 0; row < 2; ++row) {
        std::uint32_t low = 0;
        std::uint32_t high = 0;
        load_8(strip, place + row * width, low, high);
        bytes[2 * row][channel] = spread(low);
        bytes[2 * row + 1][channel] = spread(__funnelshift_rc(low, high, 4 * width));
      }
    }
#pragma unroll
    for (std::uint32_t row = 0; row < 2; ++row) {
      const std::uint32_t slot = (2 * (first + source) + row) % kRingRows;
      auto* const place = reinterpret_cast<uint4*>(ring + slot * kColumns + group * 8);
      place[0] = pixels_of(bytes[2 * row]);
      place[1] = pixels_of(bytes[2 * row + 1]);
    }
  }
  return at + __shfl_sync(kAll, sum, kChunkPairs - 1);
}

__device__ std::uint32_t sum_of_warp(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(kAll, value);
#else
  for (std::uint32_t other = kWarp / 2; other > 0; other /= 2) value += __shfl_xor_sync(kAll, value, other);
  return value;
#endif
}

__device__ std::uint32_t min_halves(std::uint32_t a, std::uint32_t b) {
#if __CUDA_ARCH__ >= 900
  std::uint32_t result;
  asm("min.u16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
#else
  return __vminu2(a, b);
#endif
}
__device__ std::uint32_t max_halves(std::uint32_t a, std::uint32_t b) {
#if __CUDA_ARCH__ >= 900
  std::uint32_t result;
  asm("max.u16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
#else
  return __vmaxu2(a, b);
#endif
}

// Two channels of a column, one in each half.
struct Diagonal {
  std::uint32_t seed;
  std::uint32_t value;  // of the row before
  std::uint32_t left;   // of the column before, the row before
  __device__ explicit Diagonal(std::uint32_t start) : seed(start), value(start), left(start) {}

  // residual: + 128 in each half.
  __device__ std::uint32_t next(std::uint32_t residual, bool first_column) {
    const std::uint32_t corner = left;
    left = __shfl_up_sync(kAll, value, 1);
    if (first_column) left = seed;
    const std::uint32_t low = min_halves(left, value);
    const std::uint32_t high = max_halves(left, value);
    const std::uint32_t middle = max_halves(low, min_halves(corner, high));
    value = (left + value - middle + residual + kOffset) & kLow;  // no half borrows: middle <= left + value
    return value;
  }
};

// Where a column's pixels go.
template <std::uint32_t kChannels>
class Column {
 public:
  __device__ Column(const Launch& launch, const std::uint32_t* tables, bool whole, const SampleRecord& record,
                    std::uint32_t sample, std::uint32_t column)
      : launch_(launch), tables_(tables), top_(record.top), bottom_(record.top + record.height) {
    wanted_ = column >= record.left && column < record.left + record.width;
    std::uint32_t x = column - record.left;
    if (record.flip != 0) x = record.width - 1 - x;
    if (whole) x = column;
    first_ = sample * launch.out.sample + std::uint64_t{x} * launch.out.pixel;
    if (whole) first_ += top_ * launch.out.row;
  }

  // Delivers those of stored rows [begin, end) that the box has; pixel(row) gives a word, a byte a channel.
  template <class Pixel>
  __device__ void put(std::uint32_t begin, std::uint32_t end, const Pixel& pixel) const {
    if (!wanted_) return;
    begin = max(begin, top_);
    end = min(end, bottom_);
    switch (launch_.values) {
      case Values::same:
        return put_rows<Values::same, std::uint8_t>(begin, end, pixel);
      case Values::table16:
        return put_rows<Values::table16, std::uint16_t>(begin, end, pixel);
      case Values::table32:
        return put_rows<Values::table32, std::uint32_t>(begin, end, pixel);
      case Values::line_f16:
        return put_rows<Values::line_f16, std::uint16_t>(begin, end, pixel);
      case Values::line_bf16:
        return put_rows<Values::line_bf16, std::uint16_t>(begin, end, pixel);
    }
  }

 private:
  template <Values kValues, class Element, class Pixel>
  __device__ void put_rows(std::uint32_t begin, std::uint32_t end, const Pixel& pixel) const {
    auto* target = reinterpret_cast<Element*>(launch_.target) + first_ + (begin - top_) * launch_.out.row;
#pragma unroll 4
    for (std::uint32_t row = begin; row < end; ++row, target += launch_.out.row) {
      const std::uint32_t bytes = pixel(row);
#pragma unroll
      for (std::uint32_t channel = 0; channel < kChannels; ++channel)
        __stcs(target + channel * launch_.out.plane,
               value<kValues, Element>(channel, static_cast<std::uint8_t>(bytes >> 8 * channel)));
    }
  }
  template <Values kValues, class Element>
  __device__ Element value(std::uint32_t channel, std::uint8_t byte) const {
    if constexpr (kValues == Values::same) return byte;
    if constexpr (kValues == Values::table16 || kValues == Values::table32)
      return static_cast<Element>(tables_[channel * 256 + byte]);
    return static_cast<Element>(line_value<kValues>(launch_, channel, byte));
  }

  const Launch& launch_;
  const std::uint32_t* tables_;
  std::uint32_t top_;
  std::uint32_t bottom_;
  bool wanted_;
  std::uint64_t first_;  // element of the box's first row
};

// Rows [0, bottom) of a strip; returns the widths of their groups and of the rest of the last 32 rows.
template <std::uint32_t kChannels>
__device__ std::uint32_t unpack_rows(const Strip& strip, const Unpacking& frames, std::uint32_t bottom,
                                     const Column<kChannels>& column, std::uint32_t* ring) {
  const std::uint32_t lane = threadIdx.x % kWarp;
  const std::uint32_t seeds = strip.word(0);
  Diagonal even(seeds & kLow);
  Diagonal odd(seeds >> 8 & kLow);
  for (std::uint32_t row = kChunkRows; row < kRingRows; ++row)
    ring[row * kColumns + lane] = 0x80808080;  // rows before the first: residuals 0 keep the seed
  std::uint32_t at = 0;
  for (std::uint32_t begin = 0; begin < bottom + kChunkRows; begin += kChunkRows) {
    __syncwarp();
    if (begin < frames.height && begin < bottom)
      at = spread_residuals<kChannels>(strip, frames, begin / 2, at, ring);
    __syncwarp();
#pragma unroll 8
    for (std::uint32_t step = begin; step < begin + kChunkRows; ++step) {
      std::uint32_t* const place = ring + (step - lane) % kRingRows * kColumns + lane;
      const std::uint32_t residual = *place;
      std::uint32_t first = even.next(residual & kLow, lane == 0);
      std::uint32_t second = 0;
      if constexpr (kChannels > 1) second = odd.next(residual >> 8 & kLow, lane == 0);
      if constexpr (kChannels > 2) first = (first + (second & 0xFFFF) * kBytes + kOffset) & kLow;
      *place = first | second << 8;
    }
    if (begin == 0) continue;
    column.put(begin - kChunkRows, begin,
               [&](std::uint32_t row) { return ring[row % kRingRows * kColumns + lane]; });
  }
  return at;
}

// A sample that is stored as it is, [channel][row][column].
template <std::uint32_t kChannels>
__device__ void read_rows(const SampleRecord& record, const Unpacking& frames, std::uint32_t x,
                          const Column<kChannels>& column) {
  if (x >= frames.width) return;
  const std::uint64_t plane = std::uint64_t{frames.height} * frames.width;
  const std::uint8_t* const first = record.source + packed::kStoredBegin + x;
  column.put(0, frames.height, [&](std::uint32_t row) {
    std::uint32_t pixel = 0;
#pragma unroll
    for (std::uint32_t channel = 0; channel < kChannels; ++channel)
      pixel |= std::uint32_t{__ldcs(first + channel * plane + std::uint64_t{row} * frames.width)}
               << 8 * channel;
    return pixel;
  });
}

// One strip of one sample, by a warp.
template <std::uint32_t kChannels>
__device__ void unpack_strip(const Launch& launch, const Unpacking& frames, const std::uint32_t* tables,
                             std::uint32_t sample, std::uint32_t index, std::uint32_t* ring) {
  const std::uint32_t lane = threadIdx.x % kWarp;
  const SampleRecord record = launch.records[sample];
  Strip strip;
  bool stored = false;
  bool right = find_strip<kChannels>(record, frames, index, stored, strip);
  if (right) {
    const std::uint32_t x = index * kColumns + lane;
    const bool needed = index * kColumns < record.left + record.width && (index + 1) * kColumns > record.left;
    const Column<kChannels> column(launch, tables, frames.whole, record, sample, x);
    if (stored) {
      if (needed) read_rows<kChannels>(record, frames, x, column);
    } else {
      const std::uint32_t bottom = needed ? record.top + record.height : 0;
      std::uint32_t widths = needed ? unpack_rows<kChannels>(strip, frames, bottom, column, ring) : 0;
      std::uint32_t rest = 0;
      const std::uint32_t summed = (bottom + kChunkRows - 1) / kChunkRows * kChunkPairs;
      for (std::uint32_t pair = summed + lane; pair < frames.pairs; pair += kWarp)
        rest += pair_codes<kChannels>(strip, pair).widths();
      widths += sum_of_warp(rest);
      right = strip.units == units_of(bits_begin(frames) + 2 * widths);
    }
  }
  if (!right && lane == 0) frames.broken[sample] = 1;
}

// Of a sample of any size, as packed::Shape has it.
__device__ Unpacking frame_of(const Unpacking& all, const SampleGeometry& geometry, std::uint32_t channels) {
  Unpacking frame = all;
  frame.height = geometry.stored_height;
  frame.width = geometry.stored_width;
  frame.pairs = (frame.height + 1) / 2;
  frame.strips = (frame.width + kColumns - 1) / kColumns;
  frame.code_bytes = 2 * channels * frame.pairs;
  frame.first_unit = units_of(packed::kHeaderBytes + 4 * frame.strips);
  const std::uint64_t pixels = std::uint64_t{channels} * frame.height * frame.width;
  frame.stored_units = (packed::kStoredBegin + pixels + packed::kAlignment - 1) / packed::kAlignment;
  return frame;
}
// Where it is unpacked to: interleaved pixels.
__device__ Launch launch_of(const Launch& all, const Unpacking& frame, std::uint32_t sample) {
  Launch launch = all;
  launch.target =
      reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(all.records[all.samples + sample].source));
  launch.out.sample = 0;
  launch.out.pixel = all.channels;
  launch.out.row = std::uint64_t{frame.width} * all.channels;
  launch.out.plane = 1;
  return launch;
}

// kFree: launch.geometry says how large each sample is, and `all` has the strips of the widest.
template <std::uint32_t kChannels, bool kFree>
__global__ void __launch_bounds__(kWarps* kWarp)
    unpack_strips(const __grid_constant__ Launch launch, const __grid_constant__ Unpacking all) {
  __shared__ std::uint32_t tables[kChannels * 256];
  __shared__ __align__(16) std::uint32_t rings[kWarps][kRingRows * kColumns];
  if (launch.values == Values::table16 || launch.values == Values::table32) {
    for (std::uint32_t i = threadIdx.x; i < kChannels * 256; i += kWarps * kWarp)
      tables[i] = launch.tables[i];
    __syncthreads();
  }
  const std::uint32_t warp = threadIdx.x / kWarp;
  const std::uint32_t strips = all.strips;
  const std::uint64_t tasks = std::uint64_t{launch.samples} * strips;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * kWarps + warp; i < tasks;
       i += std::uint64_t{gridDim.x} * kWarps) {
    const auto sample = static_cast<std::uint32_t>(i / strips);
    const auto index = static_cast<std::uint32_t>(i - std::uint64_t{sample} * strips);
    if constexpr (kFree) {
      const Unpacking frames = frame_of(all, launch.geometry[sample], kChannels);
      if (index >= frames.strips) continue;
      const Launch own = launch_of(launch, frames, sample);
      unpack_strip<kChannels>(own, frames, tables, sample, index, rings[warp]);
    } else {
      unpack_strip<kChannels>(launch, all, tables, sample, index, rings[warp]);
    }
  }
}

template <bool kFree>
void launch_strips(const Launch& launch, const Unpacking& frames, unsigned blocks, cudaStream_t stream) {
  switch (launch.channels) {
    case 1:
      unpack_strips<1, kFree><<<blocks, kWarps * kWarp, 0, stream>>>(launch, frames);
      break;
    case 2:
      unpack_strips<2, kFree><<<blocks, kWarps * kWarp, 0, stream>>>(launch, frames);
      break;
    case 3:
      unpack_strips<3, kFree><<<blocks, kWarps * kWarp, 0, stream>>>(launch, frames);
      break;
    default:
      unpack_strips<4, kFree><<<blocks, kWarps * kWarp, 0, stream>>>(launch, frames);
      break;
  }
}

}  // namespace

void launch_unpack(const Launch& launch, const Unpacking& frames, cudaStream_t stream) {
  const std::uint64_t warps = std::uint64_t{launch.samples} * frames.strips;
  const auto blocks =
      static_cast<unsigned>(std::min<std::uint64_t>((warps + kWarps - 1) / kWarps, 1U << 20U));
  if (launch.geometry != nullptr)
    launch_strips<true>(launch, frames, blocks, stream);
  else
    launch_strips<false>(launch, frames, blocks, stream);
}

}  // namespace shard::gpu
