// Boxes of any size: bilinear, antialiased when shrinking, in two passes through shared memory.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "cuda/launch.cuh"
#include "transform/arithmetic.hpp"

namespace shard::gpu {

namespace {

// A block resizes a tile of output columns and a band of output rows. First it resizes the columns of the
// stored rows that some output rows need, into shared memory, then the rows of these. It makes as many output
// rows at a time as the shared memory has room for their stored rows.
struct ResizeShape {
  std::uint32_t tile;  // output columns
  std::uint32_t tiles;
  std::uint32_t bands;        // of kBandRows output rows
  std::uint32_t column_taps;  // room for each output
  std::uint32_t row_taps;
  std::uint32_t stored_rows;  // room; at least row_taps
};
constexpr std::uint32_t kMaxTile = 64;
constexpr std::uint32_t kBandRows = 32;
constexpr std::size_t kSharedBytes = 48 * 1024;  // available on every device without a special call

struct ResizeShared {
  std::uint32_t tables[4 * 256];
  Taps columns[kMaxTile];
  Taps rows[kBandRows];
};

std::size_t values_offset(const ResizeShape& shape) {
  return sizeof(ResizeShared) + 2 * (shape.column_taps * shape.tile + shape.row_taps * kBandRows);
}

template <std::uint32_t kChannels>
__global__ void __launch_bounds__(kThreads)
    resize_tiles(const __grid_constant__ Launch launch, const __grid_constant__ ResizeShape shape) {
  extern __shared__ __align__(16) std::byte memory[];
  auto& shared = *reinterpret_cast<ResizeShared*>(memory);
  auto* const column_weights =
      reinterpret_cast<std::int16_t*>(memory + sizeof(ResizeShared));                 // [tap][column]
  std::int16_t* const row_weights = column_weights + shape.column_taps * shape.tile;  // [tap][row]
  std::int16_t* const values = row_weights + shape.row_taps * kBandRows;  // [stored row][column][channel]

  const std::uint32_t lane = threadIdx.x % kWarp;
  const std::uint32_t warp = threadIdx.x / kWarp;
  constexpr std::uint32_t kWarps = kThreads / kWarp;
  const std::uint32_t left = blockIdx.x % shape.tiles * shape.tile;
  const std::uint32_t top = blockIdx.x / shape.tiles * kBandRows;
  const std::uint32_t columns = min(shape.tile, launch.out.width - left);
  const std::uint32_t rows = min(kBandRows, launch.out.height - top);
  const std::uint32_t pitch = columns * kChannels;
  const bool by_table = launch.values == Values::table16 || launch.values == Values::table32;
  if (by_table)
    for (std::uint32_t i = threadIdx.x; i < kChannels * 256; i += kThreads)
      shared.tables[i] = launch.tables[i];

  for (std::uint32_t sample = blockIdx.y; sample < launch.samples; sample += gridDim.y) {
    const SampleRecord record = launch.records[sample];
    const std::uint8_t* const box =
        record.source + record.top * launch.in.row + std::uint64_t{record.left} * launch.in.pixel;
    __syncthreads();  // the last sample is done
    const auto box_width = static_cast<std::int32_t>(record.width);
    const auto box_height = static_cast<std::int32_t>(record.height);
    const auto out_width = static_cast<std::int32_t>(launch.out.width);
    const auto out_height = static_cast<std::int32_t>(launch.out.height);
    if (threadIdx.x < columns) {
      const auto at = static_cast<std::int32_t>(left + threadIdx.x);
      const std::int32_t x = record.flip != 0 ? out_width - 1 - at : at;
      const Taps taps = taps_of(box_width, out_width, x);
      tap_weights(box_width, out_width, x, taps, column_weights + threadIdx.x, shape.tile);
      shared.columns[threadIdx.x] = taps;
    } else if (threadIdx.x >= kMaxTile && threadIdx.x < kMaxTile + rows) {
      const std::uint32_t row = threadIdx.x - kMaxTile;
      const auto y = static_cast<std::int32_t>(top + row);
      const Taps taps = taps_of(box_height, out_height, y);
      tap_weights(box_height, out_height, y, taps, row_weights + row, kBandRows);
      shared.rows[row] = taps;
    }
    __syncthreads();

    for (std::uint32_t begin = 0; begin < rows;) {
      const std::uint32_t first = shared.rows[begin].first;
      std::uint32_t end = begin + 1;
      while (end < rows && shared.rows[end].first + shared.rows[end].count - first <= shape.stored_rows)
        ++end;
      const std::uint32_t stored = shared.rows[end - 1].first + shared.rows[end - 1].count - first;

      for (std::uint32_t row = warp; row < stored; row += kWarps) {
        const std::uint8_t* const in = box + (first + row) * launch.in.row;
        for (std::uint32_t j = lane; j < pitch; j += kWarp) {
          const std::uint32_t x = j / kChannels;
          const std::uint32_t channel = j - x * kChannels;
          const Taps taps = shared.columns[x];
          const std::uint8_t* pixel =
              in + channel * launch.in.plane + std::uint64_t{taps.first} * launch.in.pixel;
          const std::int16_t* weight = column_weights + x;
          std::int32_t sum = 0;
          for (std::uint32_t k = 0; k < taps.count; ++k, pixel += launch.in.pixel, weight += shape.tile)
            sum += tap_term(tap_value(__ldcs(pixel)), *weight);
          values[row * pitch + j] = sum_to_value(sum);
        }
      }
      __syncthreads();

      for (std::uint32_t row = begin + warp; row < end; row += kWarps) {
        const Taps taps = shared.rows[row];
        const std::int16_t* const tap_rows = values + (taps.first - first) * pitch;
        const std::uint64_t out = sample * launch.out.sample + (top + row) * launch.out.row +
                                  std::uint64_t{left} * launch.out.pixel;
        const auto write = [&](std::uint32_t x, std::uint32_t channel) {
          const std::int16_t* value = tap_rows + x * kChannels + channel;
          const std::int16_t* weight = row_weights + row;
          std::int32_t sum = 0;
          for (std::uint32_t k = 0; k < taps.count; ++k, value += pitch, weight += kBandRows)
            sum += tap_term(*value, *weight);
          store_value(launch, shared.tables, channel, sum_to_byte(sum),
                      out + channel * launch.out.plane + std::uint64_t{x} * launch.out.pixel);
        };
        if (launch.planar_out) {
          for (std::uint32_t channel = 0; channel < kChannels; ++channel)
            for (std::uint32_t x = lane; x < columns; x += kWarp) write(x, channel);
        } else {
          for (std::uint32_t j = lane; j < pitch; j += kWarp) write(j / kChannels, j % kChannels);
        }
      }
      __syncthreads();
      begin = end;
    }
  }
}

std::uint32_t most_taps(std::uint32_t box, std::uint32_t out) {
  return box > out ? (2 * box + out - 1) / out : 2;
}

}  // namespace

void launch_resize(const TransformWork& work, const Launch& launch, cudaStream_t stream) {
  std::uint32_t widest = 1;
  std::uint32_t highest = 1;
  for (const SampleCrop& crop : work.crops) {
    widest = std::max(widest, crop.width);
    highest = std::max(highest, crop.height);
  }
  const std::uint32_t width = work.delivered.width;
  const std::uint32_t height = work.delivered.height;
  ResizeShape shape{};
  shape.bands = (height + kBandRows - 1) / kBandRows;
  shape.column_taps = most_taps(widest, width);
  shape.row_taps = most_taps(highest, height);
  std::size_t row_bytes = 0;
  std::size_t room = 0;
  for (shape.tiles = (width + kMaxTile - 1) / kMaxTile; room < shape.row_taps; ++shape.tiles) {
    shape.tile = (width + shape.tiles - 1) / shape.tiles;
    row_bytes = 2 * std::size_t{shape.tile} * launch.channels;
    room = (kSharedBytes - values_offset(shape)) / row_bytes;
  }
  shape.tiles = (width + shape.tile - 1) / shape.tile;
  // The number of stored rows that a whole band needs.
  const std::uint64_t wanted = std::uint64_t{kBandRows} * highest / height + shape.row_taps + 2;
  shape.stored_rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(room, wanted));
  const std::size_t shared_bytes = values_offset(shape) + shape.stored_rows * row_bytes;

  const dim3 grid(shape.tiles * shape.bands,
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
