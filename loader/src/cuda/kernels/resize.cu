// Boxes of any size: bilinear, antialiased when shrinking, in two passes through shared memory.
//
// A thread resizes one column of all stored rows of a tile: what its column sees stays in registers.
// Then a thread makes four pixels of one output row at a time, with all their channels. (H200, 256
// random boxes of 256x256 to 224x224: 121 us; 299 us when a thread made one value at a time and looked
// up its taps and weights.)
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/quads.cuh"
#include "cuda/kernels/resize_tile.cuh"
#include "transform/arithmetic.hpp"

namespace shard::gpu {

namespace {

// A block resizes a tile of output columns and a band of output rows. First it resizes the columns of the
// stored rows that some output rows need, into shared memory, then the rows of these. It makes as many output
// rows at a time as the shared memory has room for their stored rows.
struct ResizeShape {
  std::uint32_t tile;  // output columns, a multiple of kQuad
  std::uint32_t tiles;
  std::uint32_t lanes;        // threads for a row of columns, a power of two
  std::uint32_t column_taps;  // room for each output
  std::uint32_t row_taps;
  std::uint32_t stored_rows;  // room; at least row_taps
  bool aligned;               // four pixels of a row begin where a vector may be stored
};

struct ResizeShared {
  std::uint32_t tables[4 * 256];
  Taps columns[kMaxTile];
  Taps rows[kBandRows];
};

__host__ __device__ std::size_t values_offset(const ResizeShape& shape) {
  const std::size_t end =
      sizeof(ResizeShared) + 2 * (shape.column_taps * shape.tile + shape.row_taps * kBandRows);
  return (end + 7) / 8 * 8;
}

// What a block works on: one sample's part.
struct ResizeBlock {
  const std::uint8_t* box;
  ResizeShared* shared;
  const std::int16_t* column_weights;  // [tap][column]
  const std::int16_t* row_weights;     // [tap][row]
  std::int16_t* values;                // [stored row][channel][column]
  std::uint32_t tile;
  std::uint32_t left;
  std::uint32_t top;
  std::uint32_t columns;
  std::uint32_t sample;
};

// The columns of stored rows [first, first + stored), for columns that see at most kTaps pixels; 0: any
// number. Where a column sees fewer, the others have weight 0, and a term with weight 0 is 0.
template <std::uint32_t kChannels, std::uint32_t kTaps, bool kInterleaved>
__device__ void resize_columns(const ResizeBlock& block, const Axes& in, std::uint32_t lanes,
                               std::uint32_t first, std::uint32_t stored) {
  const std::uint32_t x = threadIdx.x % lanes;
  if (x >= block.columns) return;
  const Taps taps = block.shared->columns[x];
  const std::int16_t* const weights = block.column_weights + x;
  const std::uint64_t plane = kInterleaved ? 1 : in.plane;
  const std::uint32_t pixel = kInterleaved ? kChannels : 1;
  const std::uint8_t* row =
      block.box + (first + threadIdx.x / lanes) * in.row + std::uint64_t{taps.first} * pixel;
  std::int16_t* value = block.values + threadIdx.x / lanes * kChannels * block.tile + x;
  const std::uint32_t rows = kThreads / lanes;  // at a time
  const auto next = [&] {
    row += rows * in.row;
    value += rows * kChannels * block.tile;
  };
  if constexpr (kTaps > 0) {
    std::int16_t weight[kTaps];
    std::uint32_t offset[kTaps];
#pragma unroll
    for (std::uint32_t k = 0; k < kTaps; ++k) {
      weight[k] = k < taps.count ? weights[k * block.tile] : std::int16_t{0};
      offset[k] = min(k, taps.count - 1) * pixel;
    }
    for (std::uint32_t y = threadIdx.x / lanes; y < stored; y += rows, next()) {
#pragma unroll
      for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
        std::int32_t sum = 0;
#pragma unroll
        for (std::uint32_t k = 0; k < kTaps; ++k)
          sum += tap_term(tap_value(__ldcs(row + offset[k] + channel * plane)), weight[k]);
        value[channel * block.tile] = sum_to_value(sum);
      }
    }
  } else {
    for (std::uint32_t y = threadIdx.x / lanes; y < stored; y += rows, next()) {
      std::int32_t sums[kChannels]{};
      for (std::uint32_t k = 0; k < taps.count; ++k) {
        const std::int16_t weight = weights[k * block.tile];
#pragma unroll
        for (std::uint32_t channel = 0; channel < kChannels; ++channel)
          sums[channel] += tap_term(tap_value(__ldcs(row + k * pixel + channel * plane)), weight);
      }
#pragma unroll
      for (std::uint32_t channel = 0; channel < kChannels; ++channel)
        value[channel * block.tile] = sum_to_value(sums[channel]);
    }
  }
}

template <std::uint32_t kChannels, bool kInterleaved>
__device__ void resize_columns(const ResizeBlock& block, const Axes& in, std::uint32_t lanes,
                               std::uint32_t most_taps, std::uint32_t first, std::uint32_t stored) {
  if (most_taps <= 2) return resize_columns<kChannels, 2, kInterleaved>(block, in, lanes, first, stored);
  if (most_taps <= 3) return resize_columns<kChannels, 3, kInterleaved>(block, in, lanes, first, stored);
  resize_columns<kChannels, 0, kInterleaved>(block, in, lanes, first, stored);
}

// Output rows [begin, end) of the band, from the values of the stored rows from `first` on. Values behind the
// last column, up to a multiple of four, are not known, and what is made of them is not stored.
template <std::uint32_t kChannels>
__device__ void resize_rows(const Launch& launch, const ResizeBlock& block, bool aligned, std::uint32_t first,
                            std::uint32_t begin, std::uint32_t end) {
  const std::uint32_t quads = (block.columns + kQuad - 1) / kQuad;
  for (std::uint32_t i = threadIdx.x; i < (end - begin) * quads; i += kThreads) {
    const std::uint32_t row = begin + i / quads;
    const std::uint32_t x = i % quads * kQuad;
    const Taps taps = block.shared->rows[row];
    const std::int16_t* values = block.values + (taps.first - first) * kChannels * block.tile + x;
    const std::int16_t* weight = block.row_weights + row;
    std::int32_t sums[kChannels][kQuad]{};
    for (std::uint32_t k = 0; k < taps.count; ++k) {
#pragma unroll
      for (std::uint32_t channel = 0; channel < kChannels; ++channel, values += block.tile) {
        const uint2 four = *reinterpret_cast<const uint2*>(values);
        sums[channel][0] += tap_term(static_cast<std::int16_t>(four.x), *weight);
        sums[channel][1] += tap_term(static_cast<std::int16_t>(four.x >> 16U), *weight);
        sums[channel][2] += tap_term(static_cast<std::int16_t>(four.y), *weight);
        sums[channel][3] += tap_term(static_cast<std::int16_t>(four.y >> 16U), *weight);
      }
      weight += kBandRows;
    }
    std::uint8_t bytes[kChannels][kQuad];
#pragma unroll
    for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
#pragma unroll
      for (std::uint32_t p = 0; p < kQuad; ++p) bytes[channel][p] = sum_to_byte(sums[channel][p]);
    }
    const std::uint64_t out = block.sample * launch.out.sample + (block.top + row) * launch.out.row +
                              std::uint64_t{block.left + x} * launch.out.pixel;
    deliver_pixels<kChannels>(launch, block.shared->tables, aligned, min(kQuad, block.columns - x), out,
                              bytes);
  }
}

template <std::uint32_t kChannels>
__global__ void __launch_bounds__(kThreads)
    resize_tiles(const __grid_constant__ Launch launch, const __grid_constant__ ResizeShape shape) {
  extern __shared__ __align__(16) std::byte memory[];
  auto& shared = *reinterpret_cast<ResizeShared*>(memory);
  auto* const column_weights = reinterpret_cast<std::int16_t*>(memory + sizeof(ResizeShared));
  std::int16_t* const row_weights = column_weights + shape.column_taps * shape.tile;

  ResizeBlock block{};
  block.shared = &shared;
  block.column_weights = column_weights;
  block.row_weights = row_weights;
  block.values = reinterpret_cast<std::int16_t*>(memory + values_offset(shape));
  block.tile = shape.tile;
  block.left = blockIdx.x % shape.tiles * shape.tile;
  block.top = blockIdx.x / shape.tiles * kBandRows;
  block.columns = min(shape.tile, launch.out.width - block.left);
  const std::uint32_t rows = min(kBandRows, launch.out.height - block.top);
  const bool by_table = launch.values == Values::table16 || launch.values == Values::table32;
  if (by_table)
    for (std::uint32_t i = threadIdx.x; i < kChannels * 256; i += kThreads)
      shared.tables[i] = launch.tables[i];

  for (std::uint32_t sample = blockIdx.y; sample < launch.samples; sample += gridDim.y) {
    const SampleRecord record = launch.records[sample];
    block.sample = sample;
    block.box = record.source + record.top * launch.in.row + std::uint64_t{record.left} * launch.in.pixel;
    __syncthreads();  // the last sample is done
    const auto box_width = static_cast<std::int32_t>(record.width);
    const auto box_height = static_cast<std::int32_t>(record.height);
    const auto out_width = static_cast<std::int32_t>(launch.out.width);
    const auto out_height = static_cast<std::int32_t>(launch.out.height);
    if (threadIdx.x < block.columns) {
      const auto at = static_cast<std::int32_t>(block.left + threadIdx.x);
      const std::int32_t x = record.flip != 0 ? out_width - 1 - at : at;
      const Taps taps = taps_of(box_width, out_width, x);
      tap_weights(box_width, out_width, x, taps, column_weights + threadIdx.x, shape.tile);
      shared.columns[threadIdx.x] = taps;
    } else if (threadIdx.x >= kMaxTile && threadIdx.x < kMaxTile + rows) {
      const std::uint32_t row = threadIdx.x - kMaxTile;
      const auto y = static_cast<std::int32_t>(block.top + row);
      const Taps taps = taps_of(box_height, out_height, y);
      tap_weights(box_height, out_height, y, taps, row_weights + row, kBandRows);
      shared.rows[row] = taps;
    }
    __syncthreads();

    const std::uint32_t taps = most_taps(record.width, launch.out.width);
    for (std::uint32_t begin = 0; begin < rows;) {
      const std::uint32_t first = shared.rows[begin].first;
      std::uint32_t end = begin + 1;
      while (end < rows && shared.rows[end].first + shared.rows[end].count - first <= shape.stored_rows)
        ++end;
      const std::uint32_t stored = shared.rows[end - 1].first + shared.rows[end - 1].count - first;
      if (launch.in.plane == 1)
        resize_columns<kChannels, true>(block, launch.in, shape.lanes, taps, first, stored);
      else
        resize_columns<kChannels, false>(block, launch.in, shape.lanes, taps, first, stored);
      __syncthreads();
      resize_rows<kChannels>(launch, block, shape.aligned, first, begin, end);
      __syncthreads();
      begin = end;
    }
  }
}

// The columns of a tile, if there are `tiles` of them.
std::uint32_t tile_of(std::uint32_t width, std::uint32_t tiles) {
  return (width + tiles * kQuad - 1) / (tiles * kQuad) * kQuad;
}

ResizeShape shape_of(const TransformWork& work, const Launch& launch) {
  const LargestBox box(work);
  const std::uint32_t width = work.delivered.width;
  const std::uint32_t height = work.delivered.height;
  ResizeShape shape{};
  shape.column_taps = most_taps(box.width, width);
  shape.row_taps = most_taps(box.height, height);
  std::size_t row_bytes = 0;
  std::size_t room = 0;
  std::uint32_t tiles = (width + kMaxTile - 1) / kMaxTile;
  // Tiles of 32 columns, where larger ones would leave many threads without one.
  if (4 * width <= 3 * tiles * kMaxTile) tiles = (width + kMaxTile / 2 - 1) / (kMaxTile / 2);
  for (; room < shape.row_taps; ++tiles) {
    shape.tile = tile_of(width, tiles);
    row_bytes = 2 * std::size_t{shape.tile} * launch.channels;
    room = (kSharedBytes - values_offset(shape)) / row_bytes;
  }
  shape.tiles = (width + shape.tile - 1) / shape.tile;
  shape.lanes = shape.tile > kWarp ? 2 * kWarp : kWarp;
  // The number of stored rows that a whole band needs.
  const std::uint64_t wanted = std::uint64_t{kBandRows} * box.height / height + shape.row_taps + 2;
  shape.stored_rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(room, wanted));
  // Then rows, planes and samples begin at multiples of four elements, which have at most four bytes.
  shape.aligned = width % kQuad == 0 && reinterpret_cast<std::uintptr_t>(launch.target) % 16 == 0;
  return shape;
}

}  // namespace

void launch_resize(const TransformWork& work, const Launch& launch, cudaStream_t stream) {
  const ResizeShape shape = shape_of(work, launch);
  const std::size_t shared_bytes =
      values_offset(shape) + 2 * std::size_t{shape.stored_rows} * shape.tile * launch.channels;
  const std::uint32_t bands = (work.delivered.height + kBandRows - 1) / kBandRows;
  const dim3 grid(shape.tiles * bands,
                  static_cast<unsigned>(std::min<std::size_t>(launch.samples, kMaxGridY)));
  switch (launch.channels) {
    case 1:
      resize_tiles<1><<<grid, kThreads, shared_bytes, stream>>>(launch, shape);
      break;
    case 2:
      resize_tiles<2><<<grid, kThreads, shared_bytes, stream>>>(launch, shape);
      break;
    case 3:
      resize_tiles<3><<<grid, kThreads, shared_bytes, stream>>>(launch, shape);
      break;
    default:
      resize_tiles<4><<<grid, kThreads, shared_bytes, stream>>>(launch, shape);
      break;
  }
}

}  // namespace shard::gpu
