// Samples stored as floats, and wide samples (transform/check_work.hpp), of which values are computed: cast,
// normalised or resized, by the arithmetic of transform/float_arithmetic.hpp. Built without contraction of
// floating-point expressions (see CMakeLists.txt).
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "cuda/kernels/floats.cuh"
#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/resize_tile.cuh"
#include "shard/error.hpp"
#include "transform/check_work.hpp"
#include "transform/float_arithmetic.hpp"

namespace shard::gpu {

namespace {

// For a sample whose box has the delivered size, and whose values are only copied.
__device__ void copy_bits(const FloatLaunch& floats, const std::uint8_t* sample, std::uint64_t from,
                          std::uint64_t to) {
  if (floats.stored == FloatType::u8)
    __stcs(reinterpret_cast<std::uint8_t*>(floats.launch.target) + to, __ldcs(sample + from));
  else if (floats.stored == FloatType::f32)
    __stcs(reinterpret_cast<std::uint32_t*>(floats.launch.target) + to,
           __ldcs(reinterpret_cast<const std::uint32_t*>(sample) + from));
  else
    __stcs(reinterpret_cast<std::uint16_t*>(floats.launch.target) + to,
           __ldcs(reinterpret_cast<const std::uint16_t*>(sample) + from));
}

// Any layout and shape, without a resize: one thread, one element; threads follow the target's order. Index:
// wide enough for a sample's elements.
template <class Index>
__global__ void __launch_bounds__(kThreads) convert_elements(const __grid_constant__ FloatLaunch floats) {
  const Launch& launch = floats.launch;
  const auto elements = static_cast<Index>(launch.out.sample);
  for (std::uint32_t sample = blockIdx.y; sample < launch.samples; sample += gridDim.y) {
    const SampleRecord record = launch.records[sample];
    for (Index e = Index{blockIdx.x} * kThreads + threadIdx.x; e < elements;
         e += Index{gridDim.x} * kThreads) {
      const ElementOrigin origin = origin_of(launch, record, e);
      store_float(floats, origin.channel, load_float(floats.stored, record.source, origin.from),
                  sample * launch.out.sample + e);
    }
  }
}

// A block resizes a tile of output columns and a band of output rows, as in resize.cu for bytes. First it
// resizes the columns of the stored rows that some output rows need, into shared memory, then the rows of
// these. It makes as many output rows at a time as the shared memory has room for their stored rows.
struct FloatShape {
  std::uint32_t tile;  // output columns
  std::uint32_t tiles;
  std::uint32_t bands;        // of kBandRows output rows
  std::uint32_t column_taps;  // room for each output
  std::uint32_t row_taps;
  std::uint32_t stored_rows;  // room; at least row_taps
};

struct FloatShared {
  Taps columns[kMaxTile];
  Taps rows[kBandRows];
};

std::size_t values_offset(const FloatShape& shape) {
  return sizeof(FloatShared) + sizeof(float) * (shape.column_taps * shape.tile + shape.row_taps * kBandRows);
}

// weights[k * stride], k < taps.count.
__device__ void float_weights(std::int32_t box, std::int32_t out, std::int32_t x, Taps taps, float* weights,
                              std::uint32_t stride) {
  const float total = tap_total(box, out, x, taps);
  for (std::uint32_t k = 0; k < taps.count; ++k)
    weights[k * stride] = float_weight(box, out, x, taps, k, total);
}

// What each column and row of a tile sees, by all threads of the block.
__device__ void find_taps(const Launch& launch, const SampleRecord& record, std::uint32_t left,
                          std::uint32_t top, std::uint32_t columns, std::uint32_t rows, std::uint32_t tile,
                          FloatShared& shared, float* column_weights, float* row_weights) {
  const auto box_width = static_cast<std::int32_t>(record.width);
  const auto box_height = static_cast<std::int32_t>(record.height);
  const auto out_width = static_cast<std::int32_t>(launch.out.width);
  const auto out_height = static_cast<std::int32_t>(launch.out.height);
  if (threadIdx.x < columns) {
    const auto at = static_cast<std::int32_t>(left + threadIdx.x);
    const std::int32_t x = record.flip != 0 ? out_width - 1 - at : at;
    const Taps taps = taps_of(box_width, out_width, x);
    float_weights(box_width, out_width, x, taps, column_weights + threadIdx.x, tile);
    shared.columns[threadIdx.x] = taps;
  } else if (threadIdx.x >= kMaxTile && threadIdx.x < kMaxTile + rows) {
    const std::uint32_t row = threadIdx.x - kMaxTile;
    const auto y = static_cast<std::int32_t>(top + row);
    const Taps taps = taps_of(box_height, out_height, y);
    float_weights(box_height, out_height, y, taps, row_weights + row, kBandRows);
    shared.rows[row] = taps;
  }
}

// The columns of `stored` rows from element `begin` on, `pitch` values in each, a warp for a row. `values`:
// [stored row][column][channel].
template <std::uint32_t kChannels>
__device__ void columns_of(const FloatLaunch& floats, const SampleRecord& record, std::uint64_t begin,
                           std::uint32_t stored, std::uint32_t pitch, std::uint32_t tile,
                           const FloatShared& shared, const float* column_weights, float* values) {
  const Axes& axes = floats.launch.in;
  for (std::uint32_t row = threadIdx.x / kWarp; row < stored; row += kThreads / kWarp) {
    const std::uint64_t in = begin + row * axes.row;
    for (std::uint32_t j = threadIdx.x % kWarp; j < pitch; j += kWarp) {
      const std::uint32_t x = j / kChannels;
      const std::uint32_t channel = j - x * kChannels;
      const Taps taps = shared.columns[x];
      std::uint64_t pixel = in + channel * axes.plane + std::uint64_t{taps.first} * axes.pixel;
      const float* weight = column_weights + x;
      float sum = __fmul_rn(load_float(floats.stored, record.source, pixel), *weight);
      for (std::uint32_t k = 1; k < taps.count; ++k) {
        pixel += axes.pixel;
        weight += tile;
        sum = __fadd_rn(sum, __fmul_rn(load_float(floats.stored, record.source, pixel), *weight));
      }
      values[row * pitch + j] = sum;
    }
  }
}

// Of one output value, from stored rows that are `pitch` apart.
__device__ float sum_of_rows(const float* value, std::uint32_t pitch, const float* weight,
                             std::uint32_t count) {
  float sum = __fmul_rn(*value, *weight);
  for (std::uint32_t k = 1; k < count; ++k) {
    value += pitch;
    weight += kBandRows;
    sum = __fadd_rn(sum, __fmul_rn(*value, *weight));
  }
  return sum;
}

template <std::uint32_t kChannels>
__global__ void __launch_bounds__(kThreads)
    resize_floats(const __grid_constant__ FloatLaunch floats, const __grid_constant__ FloatShape shape) {
  extern __shared__ __align__(16) std::byte memory[];
  auto& shared = *reinterpret_cast<FloatShared*>(memory);
  auto* const column_weights = reinterpret_cast<float*>(memory + sizeof(FloatShared));  // [tap][column]
  float* const row_weights = column_weights + shape.column_taps * shape.tile;           // [tap][row]
  float* const values = row_weights + shape.row_taps * kBandRows;  // [stored row][column][channel]

  const Launch& launch = floats.launch;
  const std::uint32_t lane = threadIdx.x % kWarp;
  const std::uint32_t warp = threadIdx.x / kWarp;
  constexpr std::uint32_t kWarps = kThreads / kWarp;
  const std::uint32_t left = blockIdx.x % shape.tiles * shape.tile;
  const std::uint32_t top = blockIdx.x / shape.tiles * kBandRows;
  const std::uint32_t columns = min(shape.tile, launch.out.width - left);
  const std::uint32_t rows = min(kBandRows, launch.out.height - top);
  const std::uint32_t pitch = columns * kChannels;
  // Of more than four channels, each block makes one.
  const std::uint32_t first_channel = kChannels == 1 ? blockIdx.z : 0;

  // Calls body(x, channel, element) for each value of the tile's part of output row `top + row`, by one warp,
  // in the target's order.
  const auto for_row = [&](std::uint32_t sample, std::uint32_t row, const auto& body) {
    const std::uint64_t out = sample * launch.out.sample + first_channel * launch.out.plane +
                              (top + row) * launch.out.row + std::uint64_t{left} * launch.out.pixel;
    const auto value = [&](std::uint32_t x, std::uint32_t channel) {
      body(x, channel, out + channel * launch.out.plane + std::uint64_t{x} * launch.out.pixel);
    };
    if (launch.planar_out) {
      for (std::uint32_t channel = 0; channel < kChannels; ++channel)
        for (std::uint32_t x = lane; x < columns; x += kWarp) value(x, channel);
    } else {
      for (std::uint32_t j = lane; j < pitch; j += kWarp) value(j / kChannels, j % kChannels);
    }
  };

  for (std::uint32_t sample = blockIdx.y; sample < launch.samples; sample += gridDim.y) {
    const SampleRecord record = launch.records[sample];
    const std::uint64_t box = first_channel * launch.in.plane + record.top * launch.in.row +
                              std::uint64_t{record.left} * launch.in.pixel;
    if (!floats.converts && record.width == launch.out.width && record.height == launch.out.height) {
      for (std::uint32_t row = warp; row < rows; row += kWarps)
        for_row(sample, row, [&](std::uint32_t x, std::uint32_t channel, std::uint64_t element) {
          const std::uint32_t at = record.flip != 0 ? launch.out.width - 1 - (left + x) : left + x;
          copy_bits(floats, record.source,
                    box + channel * launch.in.plane + (top + row) * launch.in.row +
                        std::uint64_t{at} * launch.in.pixel,
                    element);
        });
      continue;  // the same for all threads of the block
    }
    __syncthreads();  // the last sample is done
    find_taps(launch, record, left, top, columns, rows, shape.tile, shared, column_weights, row_weights);
    __syncthreads();

    for (std::uint32_t begin = 0; begin < rows;) {
      const std::uint32_t first = shared.rows[begin].first;
      std::uint32_t end = begin + 1;
      while (end < rows && shared.rows[end].first + shared.rows[end].count - first <= shape.stored_rows)
        ++end;
      const std::uint32_t stored = shared.rows[end - 1].first + shared.rows[end - 1].count - first;

      columns_of<kChannels>(floats, record, box + first * launch.in.row, stored, pitch, shape.tile, shared,
                            column_weights, values);
      __syncthreads();

      for (std::uint32_t row = begin + warp; row < end; row += kWarps) {
        const Taps taps = shared.rows[row];
        const float* const tap_rows = values + (taps.first - first) * pitch;
        for_row(sample, row, [&](std::uint32_t x, std::uint32_t channel, std::uint64_t element) {
          const float* const value = tap_rows + x * kChannels + channel;
          store_float(floats, first_channel + channel,
                      sum_of_rows(value, pitch, row_weights + row, taps.count), element);
        });
      }
      __syncthreads();
      begin = end;
    }
  }
}

void launch_resize_floats(const TransformWork& work, const FloatLaunch& floats, cudaStream_t stream) {
  const LargestBox box(work);
  const std::uint32_t width = work.delivered.width;
  const std::uint32_t height = work.delivered.height;
  const std::uint32_t block_channels = floats.launch.channels > 4 ? 1 : floats.launch.channels;
  FloatShape shape{};
  shape.bands = (height + kBandRows - 1) / kBandRows;
  shape.column_taps = most_taps(box.width, width);
  shape.row_taps = most_taps(box.height, height);
  std::size_t row_bytes = 0;
  std::size_t room = 0;
  for (shape.tiles = (width + kMaxTile - 1) / kMaxTile; room < shape.row_taps; ++shape.tiles) {
    shape.tile = (width + shape.tiles - 1) / shape.tiles;
    row_bytes = sizeof(float) * shape.tile * block_channels;
    room = (kSharedBytes - values_offset(shape)) / row_bytes;
  }
  shape.tiles = (width + shape.tile - 1) / shape.tile;
  // The number of stored rows that a whole band needs.
  const std::uint64_t wanted = std::uint64_t{kBandRows} * box.height / height + shape.row_taps + 2;
  shape.stored_rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(room, wanted));
  const std::size_t shared_bytes = values_offset(shape) + shape.stored_rows * row_bytes;

  const dim3 grid(shape.tiles * shape.bands,
                  static_cast<unsigned>(std::min<std::size_t>(floats.launch.samples, kMaxGridY)),
                  floats.launch.channels / block_channels);
  switch (block_channels) {
    case 1:
      resize_floats<1><<<grid, kThreads, shared_bytes, stream>>>(floats, shape);
      break;
    case 2:
      resize_floats<2><<<grid, kThreads, shared_bytes, stream>>>(floats, shape);
      break;
    case 3:
      resize_floats<3><<<grid, kThreads, shared_bytes, stream>>>(floats, shape);
      break;
    default:
      resize_floats<4><<<grid, kThreads, shared_bytes, stream>>>(floats, shape);
      break;
  }
}

}  // namespace

void launch_floats(const TransformWork& work, const Launch& launch, bool resized, cudaStream_t stream) {
  const FloatLaunch floats = make_float_launch(work, launch);
  if (resized) return launch_resize_floats(work, floats, stream);
  const dim3 grid = grid_of(launch.out.sample, launch.samples);
  if (launch.out.sample < std::uint64_t{1} << 31U)
    convert_elements<std::uint32_t><<<grid, kThreads, 0, stream>>>(floats);
  else
    convert_elements<std::uint64_t><<<grid, kThreads, 0, stream>>>(floats);
}

}  // namespace shard::gpu
