// Boxes of samples of any size -> a view, by Pillow's arithmetic (exact_filter.hpp), in two passes through
// shared memory.
//
// A block makes a tile of columns and a band of rows of one view. First the columns of the stored rows that
// some output rows need, as bytes, then these rows. Where even one output row sees more stored rows than
// there is room for, its sums go on from one part of them to the next.
//
// With patches a view is its resized sample, and has a size of its own; its pixels go to their places in its
// patches. Pixels for programs may have sizes of their own, too (Launch::own_sizes).
//
// Samples whose outputs see many pixels need narrow tiles, because each output has its weights in shared
// memory: they have a launch of their own.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/quads.cuh"
#include "cuda/kernels/resize_tile.cuh"
#include "transform/check_work.hpp"
#include "transform/exact/exact_filter.hpp"

namespace shard::gpu {

namespace {

// Of a multiprocessor. Fewer registers per thread cost less than a third of the warps (H100: 717,000 and
// 831,000 crops/s).
constexpr int kBlocksAtOnce = 3;
// Of a part, at most: what is done once for a part, the weights above all, was more than a quarter of the
// instructions with 64 columns. More rows leave multiprocessors idle at the end.
constexpr std::uint32_t kColumns = 128;
constexpr std::uint32_t kRows = 32;
static_assert(kColumns + kRows <= kThreads);           // a thread for the weights of each
constexpr std::uint32_t kFewTaps = 16;                 // that samples of the first launch may have
constexpr std::size_t kColumnWeightBytes = 16 * 1024;  // if a tile of four columns needs no more
constexpr std::size_t kRowWeightBytes = 8 * 1024;

struct ExactShape {
  std::uint32_t tile;  // output columns, a multiple of kQuad
  std::uint32_t tiles;
  std::uint32_t band;         // output rows
  std::uint32_t lanes;        // threads for a row of columns, a power of two
  std::uint32_t column_taps;  // room for each output
  std::uint32_t row_taps;
  std::uint32_t stored_rows;  // room
  std::uint32_t first;        // of the samples: their ranks
  std::uint32_t samples;
  bool aligned;  // four pixels of a row begin where a vector may be stored
  ResizeFilter filter;
  std::uint8_t fill[4];
  std::uint32_t patch;  // side; 0: none
};

struct ExactShared {
  std::uint32_t tables[4 * 256];
  std::uint32_t column_first[kColumns];
  std::uint32_t column_count[kColumns];  // 0: the view has no pixel there
  std::uint32_t row_first[kRows];
  std::uint32_t row_count[kRows];
};

__host__ __device__ std::size_t values_offset(const ExactShape& shape) {
  return sizeof(ExactShared) + 4 * std::size_t{shape.column_taps} * shape.tile +
         4 * std::size_t{shape.row_taps} * shape.band;
}

struct ExactBlock {
  const std::uint8_t* box;
  ExactShared* shared;
  const std::int32_t* column_weights;  // [tap][column]
  const std::int32_t* row_weights;     // [tap][row]
  std::uint8_t* values;                // [stored row][channel][column]
  std::uint64_t row_step;              // of the stored sample
  std::uint64_t plane_step;
  std::uint32_t tile;
  std::uint32_t band;
  std::uint32_t left;
  std::uint32_t top;
  std::uint32_t columns;
  std::uint32_t reach;  // pixels from the box's left side to the end of a stored row
  std::uint32_t sample;
  // With patches: the first one of the sample, and how many are side by side.
  std::uint64_t first_token;
  std::uint32_t grid_width;
  // Columns of the view.
  std::uint32_t width;
  // The view has pixels in all columns, and in all rows, of this part.
  bool all_columns;
  bool all_rows;
};

// The columns of stored rows [first, first + stored). kTaps: the most that a column sees, and stored rows are
// no shorter; 0: any number. Terms with weight 0 fill up what a column does not see: pixels of its row that
// are next to those, so that all have one address and distances that the compiler knows.
template <std::uint32_t kChannels, std::uint32_t kTaps, bool kInterleaved>
__device__ void exact_columns(const ExactBlock& block, std::uint32_t lanes, std::uint32_t first,
                              std::uint32_t stored) {
  const std::uint32_t x = threadIdx.x % lanes;
  if (x >= block.tile) return;
  const std::uint32_t count = x < block.columns ? block.shared->column_count[x] : 0;
  const std::uint32_t rows = kThreads / lanes;  // at a time
  std::uint8_t* value = block.values + threadIdx.x / lanes * kChannels * block.tile + x;
  if (count == 0) {
    for (std::uint32_t y = threadIdx.x / lanes; y < stored; y += rows, value += rows * kChannels * block.tile)
#pragma unroll
      for (std::uint32_t channel = 0; channel < kChannels; ++channel) value[channel * block.tile] = 0;
    return;
  }
  const std::int32_t* const weights = block.column_weights + x;
  const std::uint64_t plane = kInterleaved ? 1 : block.plane_step;
  const std::uint32_t pixel = kInterleaved ? kChannels : 1;
  std::uint32_t column = block.shared->column_first[x];
  const std::uint8_t* row = block.box + (first + threadIdx.x / lanes) * block.row_step;
  const std::uint64_t row_step = rows * block.row_step;
  const std::uint32_t value_step = rows * kChannels * block.tile;
  if constexpr (kTaps > 0) {
    const std::uint32_t beyond = column + kTaps > block.reach ? column + kTaps - block.reach : 0;
    std::int32_t weight[kTaps];
#pragma unroll
    for (std::uint32_t k = 0; k < kTaps; ++k)
      weight[k] = k >= beyond && k - beyond < count ? weights[(k - beyond) * block.tile] : 0;
    column -= beyond;
    row += std::uint64_t{column} * pixel;
    const auto load = [&](std::uint32_t(&bytes)[kChannels][kTaps]) {
#pragma unroll
      for (std::uint32_t channel = 0; channel < kChannels; ++channel)
#pragma unroll
        for (std::uint32_t k = 0; k < kTaps; ++k)
          bytes[channel][k] = __ldcs(row + k * pixel + channel * plane);
      row += row_step;
    };
    const auto store = [&](const std::uint32_t(&bytes)[kChannels][kTaps]) {
#pragma unroll
      for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
        std::int32_t sum = exact::kHalf;
#pragma unroll
        for (std::uint32_t k = 0; k < kTaps; ++k)
          sum += static_cast<std::int32_t>(bytes[channel][k]) * weight[k];
        value[channel * block.tile] = exact::byte_of(sum);
      }
      value += value_step;
    };
    // Two rows at once: threads waited for the bytes of one for a third of the time.
    std::uint32_t bytes[2][kChannels][kTaps];
    std::uint32_t y = threadIdx.x / lanes;
    for (; y + rows < stored; y += 2 * rows) {
      load(bytes[0]);
      load(bytes[1]);
      store(bytes[0]);
      store(bytes[1]);
    }
    if (y < stored) {
      load(bytes[0]);
      store(bytes[0]);
    }
  } else {
    row += std::uint64_t{column} * pixel;
    for (std::uint32_t y = threadIdx.x / lanes; y < stored; y += rows, row += row_step, value += value_step) {
      std::int32_t sums[kChannels];
#pragma unroll
      for (std::uint32_t channel = 0; channel < kChannels; ++channel) sums[channel] = exact::kHalf;
      for (std::uint32_t k = 0; k < count; ++k) {
        const std::int32_t weight = weights[k * block.tile];
#pragma unroll
        for (std::uint32_t channel = 0; channel < kChannels; ++channel)
          sums[channel] += std::int32_t{__ldcs(row + k * pixel + channel * plane)} * weight;
      }
#pragma unroll
      for (std::uint32_t channel = 0; channel < kChannels; ++channel)
        value[channel * block.tile] = exact::byte_of(sums[channel]);
    }
  }
}

template <std::uint32_t kChannels, bool kInterleaved>
__device__ void exact_columns(const ExactBlock& block, std::uint32_t lanes, std::uint32_t most_taps,
                              std::uint32_t first, std::uint32_t stored) {
  if (most_taps > 5 || block.reach < most_taps || block.reach < 3)
    return exact_columns<kChannels, 0, kInterleaved>(block, lanes, first, stored);
  if (most_taps <= 3) return exact_columns<kChannels, 3, kInterleaved>(block, lanes, first, stored);
  if (most_taps == 4) return exact_columns<kChannels, 4, kInterleaved>(block, lanes, first, stored);
  exact_columns<kChannels, 5, kInterleaved>(block, lanes, first, stored);
}

// Adds taps [begin, end) of an output row to the sums of four columns. `values`: of tap `begin`.
template <std::uint32_t kChannels>
__device__ void add_rows(const ExactBlock& block, std::uint32_t row, std::uint32_t begin, std::uint32_t end,
                         const std::uint8_t* values, std::int32_t (&sums)[kChannels][kQuad]) {
  const std::int32_t* weights = block.row_weights + begin * block.band + row;
  for (std::uint32_t k = begin; k < end; ++k, weights += block.band) {
    const std::int32_t weight = *weights;
#pragma unroll
    for (std::uint32_t channel = 0; channel < kChannels; ++channel, values += block.tile) {
      const std::uint32_t four = *reinterpret_cast<const std::uint32_t*>(values);
#pragma unroll
      for (std::uint32_t p = 0; p < kQuad; ++p)
        sums[channel][p] += static_cast<std::int32_t>(__byte_perm(four, 0, 0x4440 + p)) * weight;
    }
  }
}

template <std::uint32_t kChannels>
__device__ void begin_sums(std::int32_t (&sums)[kChannels][kQuad]) {
#pragma unroll
  for (std::uint32_t channel = 0; channel < kChannels; ++channel)
#pragma unroll
    for (std::uint32_t p = 0; p < kQuad; ++p) sums[channel][p] = exact::kHalf;
}

// Where pixel (y, x) of a resized sample is in its patches: its first element.
__device__ std::uint64_t place_in_patches(const ExactBlock& block, std::uint32_t side, std::uint32_t channels,
                                          std::uint32_t y, std::uint32_t x) {
  const std::uint64_t patch = block.first_token + std::uint64_t{y / side} * block.grid_width + x / side;
  return ((patch * side + y % side) * side + x % side) * channels;
}

// Where the view has no pixels.
template <std::uint32_t kChannels>
__device__ void fill_bytes(const ExactBlock& block, const ExactShape& shape, std::uint32_t x, bool inside,
                           std::uint8_t (&bytes)[kChannels][kQuad]) {
#pragma unroll
  for (std::uint32_t p = 0; p < kQuad; ++p) {
    if (inside && x + p < block.columns && block.shared->column_count[x + p] != 0) continue;
#pragma unroll
    for (std::uint32_t channel = 0; channel < kChannels; ++channel) bytes[channel][p] = shape.fill[channel];
  }
}

// Four columns from `x` on of output row `row` of the band. `inside`: the view has pixels in this row.
template <std::uint32_t kChannels>
__device__ void deliver_sums(const Launch& launch, const ExactBlock& block, const ExactShape& shape,
                             std::uint32_t row, std::uint32_t x, bool inside,
                             const std::int32_t (&sums)[kChannels][kQuad]) {
  std::uint8_t bytes[kChannels][kQuad];
#pragma unroll
  for (std::uint32_t p = 0; p < kQuad; ++p)
#pragma unroll
    for (std::uint32_t channel = 0; channel < kChannels; ++channel)
      bytes[channel][p] = exact::byte_of(sums[channel][p]);
  if (!inside || !block.all_columns) fill_bytes(block, shape, x, inside, bytes);
  if (shape.patch != 0) {
#pragma unroll
    for (std::uint32_t p = 0; p < kQuad; ++p) {
      if (x + p >= block.columns) break;
      const std::uint64_t at =
          place_in_patches(block, shape.patch, kChannels, block.top + row, block.left + x + p);
#pragma unroll
      for (std::uint32_t channel = 0; channel < kChannels; ++channel)
        store_value(launch, block.shared->tables, channel, bytes[channel][p], at + channel);
    }
    return;
  }
  const std::uint64_t first = launch.own_sizes ? block.first_token : block.sample;
  const std::uint64_t line = launch.own_sizes ? std::uint64_t{block.width} * kChannels : launch.out.row;
  const bool aligned = shape.aligned && (!launch.own_sizes || block.width % kQuad == 0);
  const std::uint64_t out =
      first * launch.out.sample + (block.top + row) * line + std::uint64_t{block.left + x} * launch.out.pixel;
  deliver_pixels<kChannels>(launch, block.shared->tables, aligned, min(kQuad, block.columns - x), out, bytes);
}

// What each column and row of a part sees, by all threads of the block.
__device__ void find_weights(const ExactShape& shape, const SampleRecord& record,
                             const SampleGeometry& geometry, std::uint32_t width, std::uint32_t rows,
                             const ExactBlock& block, std::int32_t* column_weights,
                             std::int32_t* row_weights) {
  ExactShared& shared = *block.shared;
  if (threadIdx.x < block.columns) {
    const std::uint32_t at = block.left + threadIdx.x;
    const std::int32_t x =
        static_cast<std::int32_t>(record.flip != 0 ? width - 1 - at : at) - geometry.column;
    std::uint32_t count = 0;
    if (x >= 0 && x < static_cast<std::int32_t>(geometry.resized_width)) {
      const exact::Taps taps(shape.filter, record.width, geometry.resized_width,
                             static_cast<std::uint32_t>(x));
      count = taps.count;
      shared.column_first[threadIdx.x] = taps.first;
      for (std::uint32_t k = 0; k < count; ++k) column_weights[k * shape.tile + threadIdx.x] = taps.weight(k);
    }
    shared.column_count[threadIdx.x] = count;
  } else if (threadIdx.x >= kColumns && threadIdx.x < kColumns + rows) {
    const std::uint32_t row = threadIdx.x - kColumns;
    const std::int32_t y = static_cast<std::int32_t>(block.top + row) - geometry.row;
    std::uint32_t count = 0;
    if (y >= 0 && y < static_cast<std::int32_t>(geometry.resized_height)) {
      const exact::Taps taps(shape.filter, record.height, geometry.resized_height,
                             static_cast<std::uint32_t>(y));
      count = taps.count;
      shared.row_first[row] = taps.first;
      for (std::uint32_t k = 0; k < count; ++k) row_weights[k * shape.band + row] = taps.weight(k);
    }
    shared.row_count[row] = count;
  }
}

// One tile and band of one sample, by all threads of the block. `rows`: of the band.
template <std::uint32_t kChannels>
__device__ void exact_part(const Launch& launch, const ExactShape& shape, const SampleGeometry& geometry,
                           std::uint32_t width, std::uint32_t rows, std::uint32_t sample, ExactBlock& block,
                           std::int32_t* column_weights, std::int32_t* row_weights) {
  ExactShared& shared = *block.shared;
  const std::uint32_t quads = (block.columns + kQuad - 1) / kQuad;
  const SampleRecord record = launch.records[sample];
  const bool planar = launch.in.plane != 1;
  const std::uint32_t pixel = planar ? 1 : kChannels;
  block.sample = sample;
  block.row_step = std::uint64_t{geometry.stored_width} * pixel;
  block.plane_step = std::uint64_t{geometry.stored_width} * geometry.stored_height;
  block.reach = geometry.stored_width - record.left;
  block.box = record.source + record.top * block.row_step + std::uint64_t{record.left} * pixel;
  __syncthreads();  // the last sample is done
  find_weights(shape, record, geometry, width, rows, block, column_weights, row_weights);
  block.all_columns =
      __syncthreads_and(threadIdx.x >= block.columns || shared.column_count[threadIdx.x] != 0) != 0;
  block.all_rows = __syncthreads_and(threadIdx.x >= rows || shared.row_count[threadIdx.x] != 0) != 0;

  // What the columns see, up to 6: more is any number.
  std::uint32_t most = 3;
  while (most < 6 &&
         __syncthreads_or(threadIdx.x < block.columns && shared.column_count[threadIdx.x] > most) != 0)
    ++most;
  const auto columns_of = [&](std::uint32_t first, std::uint32_t stored) {
    if (planar)
      exact_columns<kChannels, false>(block, shape.lanes, most, first, stored);
    else
      exact_columns<kChannels, true>(block, shape.lanes, most, first, stored);
  };
  for (std::uint32_t begin = 0; begin < rows;) {
    const std::uint32_t first = shared.row_first[begin];
    const std::uint32_t count = shared.row_count[begin];
    std::uint32_t end = begin + 1;
    const auto fits = [&](std::uint32_t row) {
      return shared.row_first[row] + shared.row_count[row] - first <= shape.stored_rows;
    };
    if (block.all_rows && fits(rows - 1)) {
      end = rows;
    } else if (count == 0) {  // rows without pixels
      while (end < rows && shared.row_count[end] == 0) ++end;
    } else {
      while (end < rows && shared.row_count[end] != 0 && fits(end)) ++end;
    }
    if (count <= shape.stored_rows) {
      if (count != 0) {
        columns_of(first, shared.row_first[end - 1] + shared.row_count[end - 1] - first);
        __syncthreads();
      }
      for (std::uint32_t i = threadIdx.x; i < (end - begin) * quads; i += kThreads) {
        const std::uint32_t row = begin + i / quads;
        const std::uint32_t x = i % quads * kQuad;
        std::int32_t sums[kChannels][kQuad];
        begin_sums(sums);
        if (count != 0)
          add_rows<kChannels>(block, row, 0, shared.row_count[row],
                              block.values + (shared.row_first[row] - first) * kChannels * shape.tile + x,
                              sums);
        deliver_sums<kChannels>(launch, block, shape, row, x, count != 0, sums);
      }
      __syncthreads();
    } else {  // one output row, part after part
      end = begin + 1;
      const std::uint32_t x = threadIdx.x * kQuad;
      std::int32_t sums[kChannels][kQuad];
      begin_sums(sums);
      for (std::uint32_t done = 0; done < count; done += shape.stored_rows) {
        const std::uint32_t part = min(shape.stored_rows, count - done);
        columns_of(first + done, part);
        __syncthreads();
        if (threadIdx.x < quads) add_rows<kChannels>(block, begin, done, done + part, block.values + x, sums);
        __syncthreads();
      }
      if (threadIdx.x < quads) deliver_sums<kChannels>(launch, block, shape, begin, x, true, sums);
    }
    begin = end;
  }
}

template <std::uint32_t kChannels>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    exact_tiles(const __grid_constant__ Launch launch, const __grid_constant__ ExactShape shape) {
  extern __shared__ __align__(16) std::byte memory[];
  auto& shared = *reinterpret_cast<ExactShared*>(memory);
  auto* const column_weights = reinterpret_cast<std::int32_t*>(memory + sizeof(ExactShared));
  std::int32_t* const row_weights = column_weights + shape.column_taps * shape.tile;

  ExactBlock block{};
  block.shared = &shared;
  block.column_weights = column_weights;
  block.row_weights = row_weights;
  block.values = reinterpret_cast<std::uint8_t*>(memory + values_offset(shape));
  block.tile = shape.tile;
  block.band = shape.band;
  if (launch.values == Values::table16 || launch.values == Values::table32)
    for (std::uint32_t i = threadIdx.x; i < kChannels * 256; i += kThreads)
      shared.tables[i] = launch.tables[i];

  for (std::uint32_t rank = blockIdx.y; rank < shape.samples; rank += gridDim.y) {
    const std::uint32_t sample = launch.geometry[shape.first + rank].ranked;
    const SampleGeometry geometry = launch.geometry[sample];
    const bool own = shape.patch != 0 || launch.own_sizes;
    const std::uint32_t width = own ? geometry.resized_width : launch.out.width;
    const std::uint32_t height = own ? geometry.resized_height : launch.out.height;
    const std::uint32_t tiles = (width + shape.tile - 1) / shape.tile;
    const std::uint32_t parts = tiles * ((height + shape.band - 1) / shape.band);
    for (std::uint32_t part = blockIdx.x; part < parts; part += gridDim.x) {
      block.left = part % tiles * shape.tile;
      block.top = part / tiles * shape.band;
      block.columns = min(shape.tile, width - block.left);
      const std::uint32_t rows = min(shape.band, height - block.top);
      block.first_token = geometry.first_token;
      block.grid_width = shape.patch != 0 ? width / shape.patch : 0;
      block.width = width;
      exact_part<kChannels>(launch, shape, geometry, width, rows, sample, block, column_weights, row_weights);
    }
  }
}
// The most pixels that outputs of a sample see.
struct TapCounts {
  std::uint32_t column;
  std::uint32_t row;
  bool many() const { return std::max(column, row) > kFewTaps; }
};
TapCounts taps_of(const TransformWork& work, const SampleCrop& crop) {
  return {exact::most_taps(work.filter, crop.width, resized_width(work, crop)),
          exact::most_taps(work.filter, crop.height, resized_height(work, crop))};
}

// The same of the samples of one launch.
struct MostTaps {
  std::uint32_t column = 1;
  std::uint32_t row = 1;
  std::uint32_t samples = 0;
  // Of the views: rows and columns.
  std::uint32_t height = 1;
  std::uint32_t width = 1;
};

// Of those that see few, and of those that see many.
std::array<MostTaps, 2> most_taps_of(const TransformWork& work, bool own_sizes) {
  std::array<MostTaps, 2> both;
  const bool own = own_sizes || work.patch != 0;
  for (const SampleCrop& crop : work.crops) {
    const TapCounts taps = taps_of(work, crop);
    MostTaps& most = both[taps.many() ? 1 : 0];
    ++most.samples;
    most.width = std::max(most.width, own ? crop.resized_width : work.delivered.width);
    most.height = std::max(most.height, own ? crop.resized_height : work.delivered.height);
    most.column = std::max(most.column, taps.column);
    most.row = std::max(most.row, taps.row);
  }
  return both;
}

ExactShape shape_of(const TransformWork& work, const Launch& launch, const MostTaps& most, bool many) {
  const std::uint32_t width = most.width;
  ExactShape shape{};
  shape.patch = work.patch;
  shape.samples = most.samples;
  shape.first = many ? launch.samples - most.samples : 0;
  shape.filter = work.filter;
  std::copy(work.fill.begin(), work.fill.end(), shape.fill);
  shape.column_taps = most.column;
  shape.row_taps = most.row;
  const auto fit = static_cast<std::uint32_t>(kColumnWeightBytes / (4 * most.column));
  const std::uint32_t tile = std::min(kColumns, std::max(fit / kQuad * kQuad, kQuad));
  // Tiles of one width, or of half of it where larger ones would leave many threads without a column.
  std::uint32_t tiles = (width + tile - 1) / tile;
  if (tile == kColumns && 4 * width <= 3 * tiles * kColumns)
    tiles = (width + kColumns / 2 - 1) / (kColumns / 2);
  shape.tile = (width + tiles * kQuad - 1) / (tiles * kQuad) * kQuad;
  shape.tiles = (width + shape.tile - 1) / shape.tile;
  shape.lanes = std::bit_ceil(shape.tile);
  const std::uint32_t rows = std::min<std::uint32_t>(
      kRows, std::max<std::uint32_t>(static_cast<std::uint32_t>(kRowWeightBytes / (4 * most.row)), 1));
  const std::uint32_t bands = (most.height + rows - 1) / rows;
  shape.band = (most.height + bands - 1) / bands;
  const std::size_t room =
      (kSharedBytes - values_offset(shape)) / (std::size_t{shape.tile} * launch.channels);
  // What a whole band needs, if the boxes of this launch shrink as much as the number of taps says.
  const std::uint64_t wanted = (std::uint64_t{shape.band} + 2) * most.row;
  shape.stored_rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(room, wanted));
  const bool quads = launch.own_sizes ? launch.out.sample % kQuad == 0 : width % kQuad == 0;
  shape.aligned = quads && reinterpret_cast<std::uintptr_t>(launch.target) % 16 == 0;
  return shape;
}

void launch_part(const TransformWork& work, const Launch& launch, const MostTaps& most, bool many,
                 cudaStream_t stream) {
  if (most.samples == 0) return;
  const ExactShape shape = shape_of(work, launch, most, many);
  const std::size_t bytes =
      values_offset(shape) + std::size_t{shape.stored_rows} * shape.tile * launch.channels;
  const std::uint32_t bands = (most.height + shape.band - 1) / shape.band;
  constexpr std::uint64_t kMostBlocks = 1U << 16U;  // for one sample; they then make several parts each
  const std::uint64_t parts = std::uint64_t{shape.tiles} * bands;
  const dim3 grid(static_cast<unsigned>(std::min(parts, kMostBlocks)),
                  static_cast<unsigned>(std::min<std::size_t>(shape.samples, kMaxGridY)));
  switch (launch.channels) {
    case 1:
      exact_tiles<1><<<grid, kThreads, bytes, stream>>>(launch, shape);
      break;
    case 2:
      exact_tiles<2><<<grid, kThreads, bytes, stream>>>(launch, shape);
      break;
    case 3:
      exact_tiles<3><<<grid, kThreads, bytes, stream>>>(launch, shape);
      break;
    default:
      exact_tiles<4><<<grid, kThreads, bytes, stream>>>(launch, shape);
      break;
  }
}

}  // namespace

bool sees_many(const TransformWork& work, const SampleCrop& crop) { return taps_of(work, crop).many(); }

void launch_exact(const TransformWork& work, const Launch& launch, cudaStream_t stream) {
  const std::array<MostTaps, 2> most = most_taps_of(work, launch.own_sizes);
  for (const bool many : {false, true}) launch_part(work, launch, most[many ? 1 : 0], many, stream);
}

}  // namespace shard::gpu
