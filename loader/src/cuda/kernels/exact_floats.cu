// Boxes of samples of any size -> a view, in float32 with Pillow's weights (FloatWeights of
// exact_filter.hpp), for samples that are not u8 of up to four channels. Same bits as the host's ExactFloats.
// Built without contraction of floating-point expressions (see CMakeLists.txt).
//
// A block makes a tile of columns and a band of rows of one view, as in exact.cu: first the columns of the
// stored rows that some output rows need, into shared memory, then these rows. Where even one output row sees
// more stored rows than there is room for, its sums go on from one part of them to the next. Of more than
// four channels, each block makes one.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "cuda/kernels/floats.cuh"
#include "cuda/kernels/launch.cuh"
#include "cuda/kernels/resize_tile.cuh"
#include "transform/check_work.hpp"
#include "transform/exact/exact_filter.hpp"

namespace shard::gpu {

namespace {

constexpr std::size_t kTileWeightBytes = 16 * 1024;  // if a tile of four columns needs no more
constexpr std::size_t kBandWeightBytes = 8 * 1024;
constexpr std::uint32_t kLeastTile = 4;

struct ExactFloatShape {
  std::uint32_t tile;         // output columns
  std::uint32_t band;         // output rows
  std::uint32_t column_taps;  // room for each output
  std::uint32_t row_taps;
  std::uint32_t stored_rows;  // room
  std::uint32_t first;        // of the samples: their ranks
  std::uint32_t samples;
  ResizeFilter filter;
  float fill;
  std::uint32_t patch;  // side; 0: none
};

struct ExactFloatShared {
  std::uint32_t column_first[kMaxTile];
  std::uint32_t column_count[kMaxTile];  // 0: the view has no pixel there
  std::uint32_t row_first[kBandRows];
  std::uint32_t row_count[kBandRows];
};

std::size_t floats_offset(const ExactFloatShape& shape) {
  return sizeof(ExactFloatShared) + sizeof(float) * (std::size_t{shape.column_taps} * shape.tile +
                                                     std::size_t{shape.row_taps} * shape.band);
}

// Products of taps, in order; those of weight 0 are left out.
struct FloatSum {
  float value = 0.0F;
  bool begun = false;
  __device__ void add(float pixel, float weight) {
    const float product = __fmul_rn(pixel, weight);
    value = begun ? __fadd_rn(value, product) : product;
    begun = true;
  }
};

// One part of one view.
struct FloatPart {
  std::uint32_t sample;
  std::uint32_t left;
  std::uint32_t top;
  std::uint32_t columns;
  std::uint32_t rows;
  std::uint32_t width;  // of the view
  std::uint32_t height;
  std::uint32_t channel;  // the first one
};

// Where element `channel` of pixel (y, x) of the view goes.
__device__ std::uint64_t target_element(const Launch& launch, const ExactFloatShape& shape,
                                        const FloatPart& part, const SampleGeometry& geometry,
                                        std::uint32_t channel, std::uint32_t y, std::uint32_t x) {
  if (shape.patch == 0)
    return part.sample * launch.out.sample + channel * launch.out.plane + y * launch.out.row +
           std::uint64_t{x} * launch.out.pixel;
  const std::uint32_t side = shape.patch;
  const std::uint64_t patch = geometry.first_token + std::uint64_t{y / side} * (part.width / side) + x / side;
  return ((patch * side + y % side) * side + x % side) * launch.channels + channel;
}

// What each column and row of the part sees, by all threads of the block.
__device__ void find_weights(const ExactFloatShape& shape, const SampleRecord& record,
                             const SampleGeometry& geometry, const FloatPart& part, ExactFloatShared& shared,
                             float* column_weights, float* row_weights) {
  if (threadIdx.x < part.columns) {
    const std::uint32_t at = part.left + threadIdx.x;
    const std::int32_t x =
        static_cast<std::int32_t>(record.flip != 0 ? part.width - 1 - at : at) - geometry.column;
    std::uint32_t count = 0;
    if (x >= 0 && x < static_cast<std::int32_t>(geometry.resized_width)) {
      const exact::FloatWeights taps(shape.filter, record.width, geometry.resized_width,
                                     static_cast<std::uint32_t>(x));
      count = taps.count;
      shared.column_first[threadIdx.x] = taps.first;
      for (std::uint32_t k = 0; k < count; ++k) column_weights[k * shape.tile + threadIdx.x] = taps.weight(k);
    }
    shared.column_count[threadIdx.x] = count;
  } else if (threadIdx.x >= kMaxTile && threadIdx.x < kMaxTile + part.rows) {
    const std::uint32_t row = threadIdx.x - kMaxTile;
    const std::int32_t y = static_cast<std::int32_t>(part.top + row) - geometry.row;
    std::uint32_t count = 0;
    if (y >= 0 && y < static_cast<std::int32_t>(geometry.resized_height)) {
      const exact::FloatWeights taps(shape.filter, record.height, geometry.resized_height,
                                     static_cast<std::uint32_t>(y));
      count = taps.count;
      shared.row_first[row] = taps.first;
      for (std::uint32_t k = 0; k < count; ++k) row_weights[k * shape.band + row] = taps.weight(k);
    }
    shared.row_count[row] = count;
  }
}

// The box of a stored sample: its first element, and the distances of rows, channels and pixels.
struct StoredBox {
  const std::uint8_t* source;
  std::uint64_t first;
  std::uint64_t row_step;
  std::uint64_t plane_step;
  std::uint32_t pixel;
};

// The columns of stored rows [first, first + count), `used` values in each, by all threads of the block.
// `values`: [stored row][column][channel].
template <std::uint32_t kChannels>
__device__ void columns_of(FloatType dtype, const StoredBox& box, std::uint32_t tile, std::uint32_t first,
                           std::uint32_t count, std::uint32_t used, const ExactFloatShared& shared,
                           const float* column_weights, float* values) {
  const std::uint32_t pitch = tile * kChannels;
  for (std::uint32_t i = threadIdx.x; i < count * used; i += kThreads) {
    const std::uint32_t row = i / used;
    const std::uint32_t j = i - row * used;
    const std::uint32_t x = j / kChannels;
    const std::uint32_t channel = j - x * kChannels;
    const std::uint64_t from = box.first + (first + row) * box.row_step + channel * box.plane_step +
                               std::uint64_t{shared.column_first[x]} * box.pixel;
    FloatSum sum;
    for (std::uint32_t k = 0; k < shared.column_count[x]; ++k) {
      const float weight = column_weights[k * tile + x];
      if (weight == 0.0F) continue;
      sum.add(load_float(dtype, box.source, from + std::uint64_t{k} * box.pixel), weight);
    }
    values[row * pitch + j] = sum.value;
  }
}

// By all threads of the block. `values`: [stored row][column][channel].
template <std::uint32_t kChannels>
__device__ void make_part(const FloatLaunch& floats, const ExactFloatShape& shape,
                          const SampleGeometry& geometry, const FloatPart& part, ExactFloatShared& shared,
                          float* column_weights, float* row_weights, float* values) {
  const Launch& launch = floats.launch;
  const SampleRecord record = launch.records[part.sample];
  const bool planar = launch.in.plane != 1;
  const std::uint32_t pixel = planar ? 1 : launch.channels;
  const std::uint64_t row_step = std::uint64_t{geometry.stored_width} * pixel;
  const std::uint64_t plane_step = planar ? std::uint64_t{geometry.stored_width} * geometry.stored_height : 1;
  const std::uint64_t box =
      part.channel * plane_step + record.top * row_step + std::uint64_t{record.left} * pixel;
  const std::uint32_t pitch = shape.tile * kChannels;
  const std::uint32_t used = part.columns * kChannels;
  __syncthreads();  // the last part is done
  find_weights(shape, record, geometry, part, shared, column_weights, row_weights);
  __syncthreads();
  const StoredBox stored{record.source, box, row_step, plane_step, pixel};
  const auto make_columns = [&](std::uint32_t first, std::uint32_t count) {
    columns_of<kChannels>(floats.stored, stored, shape.tile, first, count, used, shared, column_weights,
                          values);
  };
  // Adds taps [begin, end) of output row `row`. `of_begin`: the stored value of tap `begin`.
  const auto add_taps = [&](std::uint32_t row, std::uint32_t begin, std::uint32_t end, const float* of_begin,
                            FloatSum& sum) {
    for (std::uint32_t k = begin; k < end; ++k, of_begin += pitch) {
      const float weight = row_weights[k * shape.band + row];
      if (weight != 0.0F) sum.add(*of_begin, weight);
    }
  };
  const auto deliver = [&](std::uint32_t row, std::uint32_t j, bool inside, float value) {
    const std::uint32_t x = j / kChannels;
    const std::uint32_t channel = part.channel + j - x * kChannels;
    if (!inside || shared.column_count[x] == 0) value = shape.fill;
    store_float(floats, channel, value,
                target_element(launch, shape, part, geometry, channel, part.top + row, part.left + x));
  };

  for (std::uint32_t begin = 0; begin < part.rows;) {
    const std::uint32_t first = shared.row_first[begin];
    const std::uint32_t count = shared.row_count[begin];
    std::uint32_t end = begin + 1;
    if (count == 0) {  // a row without pixels
      for (std::uint32_t j = threadIdx.x; j < used; j += kThreads) deliver(begin, j, false, 0.0F);
    } else if (count <= shape.stored_rows) {
      while (end < part.rows && shared.row_count[end] != 0 &&
             shared.row_first[end] + shared.row_count[end] - first <= shape.stored_rows)
        ++end;
      make_columns(first, shared.row_first[end - 1] + shared.row_count[end - 1] - first);
      __syncthreads();
      for (std::uint32_t i = threadIdx.x; i < (end - begin) * used; i += kThreads) {
        const std::uint32_t row = begin + i / used;
        const std::uint32_t j = i % used;
        FloatSum sum;
        add_taps(row, 0, shared.row_count[row], values + (shared.row_first[row] - first) * pitch + j, sum);
        deliver(row, j, true, sum.value);
      }
      __syncthreads();
    } else {  // one output row, part after part
      constexpr std::uint32_t kSums = (kMaxTile * kChannels + kThreads - 1) / kThreads;
      FloatSum sums[kSums];
      for (std::uint32_t done = 0; done < count; done += shape.stored_rows) {
        const std::uint32_t rows = min(shape.stored_rows, count - done);
        make_columns(first + done, rows);
        __syncthreads();
#pragma unroll
        for (std::uint32_t s = 0; s < kSums; ++s) {
          const std::uint32_t j = threadIdx.x + s * kThreads;
          if (j < used) add_taps(begin, done, done + rows, values + j, sums[s]);
        }
        __syncthreads();
      }
#pragma unroll
      for (std::uint32_t s = 0; s < kSums; ++s) {
        const std::uint32_t j = threadIdx.x + s * kThreads;
        if (j < used) deliver(begin, j, true, sums[s].value);
      }
    }
    begin = end;
  }
}

template <std::uint32_t kChannels>
__global__ void __launch_bounds__(kThreads)
    exact_floats(const __grid_constant__ FloatLaunch floats, const __grid_constant__ ExactFloatShape shape) {
  extern __shared__ __align__(16) std::byte memory[];
  auto& shared = *reinterpret_cast<ExactFloatShared*>(memory);
  auto* const column_weights = reinterpret_cast<float*>(memory + sizeof(ExactFloatShared));  // [tap][column]
  float* const row_weights = column_weights + shape.column_taps * shape.tile;                // [tap][row]
  float* const values = row_weights + shape.row_taps * shape.band;

  const Launch& launch = floats.launch;
  for (std::uint32_t rank = blockIdx.y; rank < shape.samples; rank += gridDim.y) {
    const std::uint32_t sample = launch.geometry[shape.first + rank].ranked;
    const SampleGeometry geometry = launch.geometry[sample];
    FloatPart part{};
    part.sample = sample;
    part.width = shape.patch != 0 ? geometry.resized_width : launch.out.width;
    part.height = shape.patch != 0 ? geometry.resized_height : launch.out.height;
    part.channel = blockIdx.z * kChannels;
    const std::uint32_t tiles = (part.width + shape.tile - 1) / shape.tile;
    const std::uint32_t parts = tiles * ((part.height + shape.band - 1) / shape.band);
    for (std::uint32_t i = blockIdx.x; i < parts; i += gridDim.x) {
      part.left = i % tiles * shape.tile;
      part.top = i / tiles * shape.band;
      part.columns = min(shape.tile, part.width - part.left);
      part.rows = min(shape.band, part.height - part.top);
      make_part<kChannels>(floats, shape, geometry, part, shared, column_weights, row_weights, values);
    }
  }
}

void launch_floats_part(const TransformWork& work, const FloatLaunch& floats, bool many,
                        cudaStream_t stream) {
  ExactFloatShape shape{};
  shape.column_taps = shape.row_taps = 1;
  std::uint32_t width = 1;
  std::uint32_t height = 1;
  for (const SampleCrop& crop : work.crops) {
    if (sees_many(work, crop) != many) continue;
    ++shape.samples;
    const std::uint32_t across = resized_width(work, crop);
    const std::uint32_t down = resized_height(work, crop);
    width = std::max(width, work.patch != 0 ? across : work.delivered.width);
    height = std::max(height, work.patch != 0 ? down : work.delivered.height);
    shape.column_taps = std::max(shape.column_taps, exact::most_taps(work.filter, crop.width, across));
    shape.row_taps = std::max(shape.row_taps, exact::most_taps(work.filter, crop.height, down));
  }
  if (shape.samples == 0) return;
  const std::uint32_t channels = floats.launch.channels;
  const std::uint32_t block_channels = channels > 4 ? 1 : channels;
  shape.first = many ? floats.launch.samples - shape.samples : 0;
  shape.filter = work.filter;
  shape.fill = work.fill_value;
  shape.patch = work.patch;
  const auto fit = static_cast<std::uint32_t>(kTileWeightBytes / (sizeof(float) * shape.column_taps));
  shape.tile = std::min({kMaxTile, std::max(fit, kLeastTile), width});
  shape.band = std::clamp<std::uint32_t>(
      static_cast<std::uint32_t>(kBandWeightBytes / (sizeof(float) * shape.row_taps)), 1, kBandRows);
  const std::size_t row_bytes = sizeof(float) * shape.tile * block_channels;
  const std::uint64_t room = (kSharedBytes - floats_offset(shape)) / row_bytes;
  // What a whole band needs, if the boxes of this launch shrink as much as the number of taps says.
  const std::uint64_t wanted = (std::uint64_t{shape.band} + 2) * shape.row_taps;
  shape.stored_rows = static_cast<std::uint32_t>(std::min(room, wanted));
  const std::size_t bytes = floats_offset(shape) + shape.stored_rows * row_bytes;
  constexpr std::uint64_t kMostParts = 1U << 16U;  // for one sample; blocks then make several each
  const std::uint64_t parts =
      std::uint64_t{(width + shape.tile - 1) / shape.tile} * ((height + shape.band - 1) / shape.band);
  const dim3 grid(static_cast<unsigned>(std::min(parts, kMostParts)),
                  static_cast<unsigned>(std::min<std::size_t>(shape.samples, kMaxGridY)),
                  channels / block_channels);
  switch (block_channels) {
    case 1:
      exact_floats<1><<<grid, kThreads, bytes, stream>>>(floats, shape);
      break;
    case 2:
      exact_floats<2><<<grid, kThreads, bytes, stream>>>(floats, shape);
      break;
    case 3:
      exact_floats<3><<<grid, kThreads, bytes, stream>>>(floats, shape);
      break;
    default:
      exact_floats<4><<<grid, kThreads, bytes, stream>>>(floats, shape);
      break;
  }
}

}  // namespace

void launch_exact_floats(const TransformWork& work, const Launch& launch, cudaStream_t stream) {
  const FloatLaunch floats = make_float_launch(work, launch);
  for (const bool many : {false, true}) launch_floats_part(work, floats, many, stream);
}

}  // namespace shard::gpu
