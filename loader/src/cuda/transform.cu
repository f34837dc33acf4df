// Built without contraction of floating-point expressions (see CMakeLists.txt); where a fused step is meant
// it is written.
#include "cuda/transform.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "shard/error.hpp"
#include "transform/arithmetic.hpp"
#include "transform/check_work.hpp"
#include "transform/value_map.hpp"

namespace shard {

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarp = 32;
constexpr unsigned kMaxGridY = 65535;

// What the device reads of one sample; a launch's scratch is the tables and then these.
struct SampleRecord {
  const std::uint8_t* source;
  std::uint32_t left;
  std::uint32_t top;
  std::uint32_t width;
  std::uint32_t height;
  std::uint32_t flip;
  std::uint32_t unused;
};
static_assert(sizeof(SampleRecord) == 32);

using Tables = std::array<ValueMap::Table, 4>;
static_assert(sizeof(Tables) == 4096);

// How bytes become delivered elements.
enum class Values : std::uint32_t {
  same,     // stored elements as they are
  table16,  // by the tables
  table32,
  line_f16,  // by ValueMap's line, where it gives the table's bits
  line_bf16,
};

// Steps from element to element along each axis.
struct Axes {
  std::uint32_t width;
  std::uint32_t height;
  std::uint64_t row;
  std::uint64_t plane;  // from channel to channel
  std::uint32_t pixel;
  std::uint64_t sample;  // elements of a sample
};

struct Launch {
  const std::uint32_t* tables;  // [channel][byte]
  const SampleRecord* records;
  std::uint32_t samples;
  std::uint32_t channels;
  Axes in;
  Axes out;
  bool planar_out;
  Values values;
  float scale[4];
  float bias[4];
  std::byte* target;
};

__device__ std::uint16_t line_value(const Launch& launch, std::uint32_t channel, std::uint8_t byte) {
  const float value = __fmaf_rn(static_cast<float>(byte), launch.scale[channel], launch.bias[channel]);
  if (launch.values == Values::line_f16) return __half_as_ushort(__float2half_rn(value));
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

// `tables` may lie in shared memory.
__device__ void store_value(const Launch& launch, const std::uint32_t* tables, std::uint32_t channel,
                            std::uint8_t byte, std::uint64_t element) {
  switch (launch.values) {
    case Values::same:
      launch.target[element] = std::byte{byte};
      break;
    case Values::table32:
      reinterpret_cast<std::uint32_t*>(launch.target)[element] = tables[channel * 256 + byte];
      break;
    case Values::table16:
      reinterpret_cast<std::uint16_t*>(launch.target)[element] =
          static_cast<std::uint16_t>(tables[channel * 256 + byte]);
      break;
    default:
      reinterpret_cast<std::uint16_t*>(launch.target)[element] = line_value(launch, channel, byte);
  }
}

// Any layout, type and shape, without a resize: one thread, one element; threads follow the target's order.
// Index: wide enough for a sample's elements.
template <class Element, class Index>
__global__ void __launch_bounds__(kThreads) copy_elements(const __grid_constant__ Launch launch) {
  const auto elements = static_cast<Index>(launch.out.sample);
  for (std::uint32_t sample = blockIdx.y; sample < launch.samples; sample += gridDim.y) {
    const SampleRecord record = launch.records[sample];
    const auto* source = reinterpret_cast<const Element*>(record.source);
    for (Index e = Index{blockIdx.x} * kThreads + threadIdx.x; e < elements;
         e += Index{gridDim.x} * kThreads) {
      std::uint32_t x;
      std::uint32_t y;
      std::uint32_t channel;
      if (launch.planar_out) {
        const auto row = static_cast<std::uint32_t>(e / launch.out.width);
        x = static_cast<std::uint32_t>(e - Index{row} * launch.out.width);
        channel = row / launch.out.height;
        y = row - channel * launch.out.height;
      } else {
        const auto pixel = static_cast<std::uint32_t>(e / launch.channels);
        channel = static_cast<std::uint32_t>(e - Index{pixel} * launch.channels);
        y = pixel / launch.out.width;
        x = pixel - y * launch.out.width;
      }
      if (record.flip != 0) x = launch.out.width - 1 - x;
      const Element value = source[channel * launch.in.plane + (record.top + y) * launch.in.row +
                                   std::uint64_t{record.left + x} * launch.in.pixel];
      const std::uint64_t at = sample * launch.out.sample + e;
      if constexpr (sizeof(Element) == 1)
        store_value(launch, launch.tables, channel, value, at);
      else
        reinterpret_cast<Element*>(launch.target)[at] = value;
    }
  }
}

// Interleaved RGB bytes -> planes of 16-bit values: one thread makes 8 pixels. Sources lie on 4-byte
// boundaries and are whole words long, widths are multiples of 8.
template <Values kValues>
__global__ void __launch_bounds__(kThreads) copy_rgb(const __grid_constant__ Launch launch) {
  __shared__ std::uint16_t tables[kValues == Values::table16 ? 3 * 256 : 1];
  if constexpr (kValues == Values::table16) {
    for (std::uint32_t i = threadIdx.x; i < 3 * 256; i += kThreads)
      tables[i] = static_cast<std::uint16_t>(launch.tables[i]);
    __syncthreads();
  }
  const std::uint32_t row_groups = launch.out.width / 8;
  const std::uint32_t groups = row_groups * launch.out.height;
  for (std::uint32_t sample = blockIdx.y; sample < launch.samples; sample += gridDim.y) {
    const SampleRecord record = launch.records[sample];
    for (std::uint32_t group = blockIdx.x * kThreads + threadIdx.x; group < groups;
         group += gridDim.x * kThreads) {
      const std::uint32_t y = group / row_groups;
      const std::uint32_t x = (group - y * row_groups) * 8;
      const std::uint32_t column = record.left + (record.flip != 0 ? launch.out.width - 8 - x : x);
      const std::uint8_t* const first =
          record.source + (record.top + y) * launch.in.row + std::uint64_t{column} * 3;
      const auto address = reinterpret_cast<std::uintptr_t>(first);
      const auto* const words = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
      const auto shift = static_cast<std::uint32_t>(address & 3U) * 8;
      std::uint32_t raw[7];
#pragma unroll
      for (int i = 0; i < 6; ++i) raw[i] = __ldg(words + i);
      raw[6] = shift != 0 ? __ldg(words + 6) : 0;  // only where it holds wanted bytes
      std::uint32_t bytes[6];
#pragma unroll
      for (int i = 0; i < 6; ++i) bytes[i] = __funnelshift_r(raw[i], raw[i + 1], shift);

#pragma unroll
      for (std::uint32_t channel = 0; channel < 3; ++channel) {
        std::uint32_t pairs[4];
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
          const int low = (2 * pair) * 3 + static_cast<int>(channel);
          const int high = low + 3;
          const std::uint32_t a = bytes[low / 4] >> (low % 4 * 8) & 0xFFU;
          const std::uint32_t b = bytes[high / 4] >> (high % 4 * 8) & 0xFFU;
          if constexpr (kValues == Values::table16) {
            pairs[pair] = tables[channel * 256 + a] | std::uint32_t{tables[channel * 256 + b]} << 16U;
          } else {
            const float u = __fmaf_rn(static_cast<float>(a), launch.scale[channel], launch.bias[channel]);
            const float v = __fmaf_rn(static_cast<float>(b), launch.scale[channel], launch.bias[channel]);
            if constexpr (kValues == Values::line_f16) {
              const __half2 both = __floats2half2_rn(u, v);
              memcpy(&pairs[pair], &both, 4);
            } else {
              const __nv_bfloat162 both = __floats2bfloat162_rn(u, v);
              memcpy(&pairs[pair], &both, 4);
            }
          }
        }
        uint4 out = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
        if (record.flip != 0)
          out = make_uint4(__byte_perm(pairs[3], 0, 0x1032), __byte_perm(pairs[2], 0, 0x1032),
                           __byte_perm(pairs[1], 0, 0x1032), __byte_perm(pairs[0], 0, 0x1032));
        const std::uint64_t element =
            sample * launch.out.sample + channel * launch.out.plane + y * launch.out.row + x;
        *reinterpret_cast<uint4*>(launch.target + 2 * element) = out;
      }
    }
  }
}

// A block resizes a tile of output columns and a band of output rows: columns of the stored rows that some
// output rows need into shared memory, then rows of those; as many output rows at a time as the shared memory
// holds stored rows for.
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
constexpr std::size_t kSharedBytes = 48 * 1024;  // what every device gives without asking

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
    __syncthreads();  // the sample before is done
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
            sum += tap_term(tap_value(__ldg(pixel)), *weight);
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

constexpr std::uint32_t kGatherBlockBytes = 32 * 1024;

template <class Unit>
__device__ void copy_units(const CopyItem& item, std::uint64_t begin, std::uint64_t end) {
  const auto* source = reinterpret_cast<const Unit*>(item.source);
  auto* target = reinterpret_cast<Unit*>(item.target);
  for (std::uint64_t i = begin / sizeof(Unit) + threadIdx.x; i < end / sizeof(Unit); i += kThreads)
    target[i] = source[i];
  const std::uint64_t rest = end / sizeof(Unit) * sizeof(Unit);  // of the last block: less than a unit
  if (rest + threadIdx.x < end) item.target[rest + threadIdx.x] = item.source[rest + threadIdx.x];
}

__global__ void __launch_bounds__(kThreads) gather_items(const CopyItem* items, std::uint32_t count) {
  for (std::uint32_t i = blockIdx.y; i < count; i += gridDim.y) {
    const CopyItem item = items[i];
    const auto both =
        reinterpret_cast<std::uintptr_t>(item.source) | reinterpret_cast<std::uintptr_t>(item.target);
    for (std::uint64_t begin = std::uint64_t{blockIdx.x} * kGatherBlockBytes; begin < item.size_bytes;
         begin += std::uint64_t{gridDim.x} * kGatherBlockBytes) {
      const std::uint64_t end = min(begin + kGatherBlockBytes, item.size_bytes);
      if (both % 16 == 0)
        copy_units<uint4>(item, begin, end);
      else if (both % 4 == 0)
        copy_units<std::uint32_t>(item, begin, end);
      else
        copy_units<std::uint8_t>(item, begin, end);
    }
  }
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears the thread's copy, so that it does not surface elsewhere
  throw Error(ErrorCode::io, std::string("CUDA: ") + what + ": " + cudaGetErrorString(error) + " (" +
                                 cudaGetErrorName(error) + ")");
}

Axes axes_of(const SampleSpec& spec) {
  const bool planar = spec.layout == Layout::nchw;
  Axes axes{};
  axes.width = spec.width;
  axes.height = spec.height;
  axes.pixel = planar ? 1 : spec.channels;
  axes.row = std::uint64_t{spec.width} * axes.pixel;
  axes.plane = planar ? std::uint64_t{spec.width} * spec.height : 1;
  axes.sample = spec.elements();
  return axes;
}

Launch make_launch(const TransformWork& work, const ValueMap* map, const std::byte* scratch) {
  Launch launch{};
  launch.tables = reinterpret_cast<const std::uint32_t*>(scratch);
  launch.records = reinterpret_cast<const SampleRecord*>(scratch + sizeof(Tables));
  launch.samples = static_cast<std::uint32_t>(work.sources.size());
  launch.channels = work.stored.channels;
  launch.in = axes_of(work.stored);
  launch.out = axes_of(work.delivered);
  launch.planar_out = work.delivered.layout == Layout::nchw;
  launch.target = work.target;
  if (map == nullptr) return launch;
  launch.values = work.delivered.dtype == DType::f32 ? Values::table32 : Values::table16;
  if (map->fused) launch.values = work.delivered.dtype == DType::f16 ? Values::line_f16 : Values::line_bf16;
  std::copy(map->scale.begin(), map->scale.end(), launch.scale);
  std::copy(map->bias.begin(), map->bias.end(), launch.bias);
  return launch;
}

// Blocks for `units` pieces of a thread each; never more than a grid may have.
dim3 grid_of(std::uint64_t units, std::size_t samples) {
  const std::uint64_t blocks = std::min<std::uint64_t>((units + kThreads - 1) / kThreads, 1U << 20U);
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(std::min<std::size_t>(samples, kMaxGridY)), 1};
}

bool suits_copy_rgb(const TransformWork& work) {
  const auto on_words = [](const std::byte* source) {
    return reinterpret_cast<std::uintptr_t>(source) % 4 == 0;
  };
  return work.stored.dtype == DType::u8 && work.stored.layout == Layout::nhwc && work.stored.channels == 3 &&
         work.delivered.layout == Layout::nchw && size_bytes(work.delivered.dtype) == 2 &&
         work.delivered.width % 8 == 0 && work.stored.size_bytes() % 4 == 0 &&
         reinterpret_cast<std::uintptr_t>(work.target) % 16 == 0 &&
         std::all_of(work.sources.begin(), work.sources.end(), on_words);
}

template <class Element>
void launch_copy_elements(const Launch& launch, cudaStream_t stream) {
  const dim3 grid = grid_of(launch.out.sample, launch.samples);
  if (launch.out.sample < std::uint64_t{1} << 31U)
    copy_elements<Element, std::uint32_t><<<grid, kThreads, 0, stream>>>(launch);
  else
    copy_elements<Element, std::uint64_t><<<grid, kThreads, 0, stream>>>(launch);
}

void launch_copy(const TransformWork& work, const Launch& launch, cudaStream_t stream) {
  if (suits_copy_rgb(work)) {
    const dim3 grid = grid_of(launch.out.plane / 8, launch.samples);
    if (launch.values == Values::line_f16)
      copy_rgb<Values::line_f16><<<grid, kThreads, 0, stream>>>(launch);
    else if (launch.values == Values::line_bf16)
      copy_rgb<Values::line_bf16><<<grid, kThreads, 0, stream>>>(launch);
    else
      copy_rgb<Values::table16><<<grid, kThreads, 0, stream>>>(launch);
    return;
  }
  const std::size_t element_bytes = size_bytes(work.stored.dtype);
  if (element_bytes == 1)
    launch_copy_elements<std::uint8_t>(launch, stream);
  else if (element_bytes == 2)
    launch_copy_elements<std::uint16_t>(launch, stream);
  else
    launch_copy_elements<std::uint32_t>(launch, stream);
}

std::uint32_t most_taps(std::uint32_t box, std::uint32_t out) {
  return box > out ? (2 * box + out - 1) / out : 2;
}

void launch_resize(const TransformWork& work, const Launch& launch, cudaStream_t stream) {
  std::uint32_t widest = 1;
  std::uint32_t highest = 1;
  for (const SampleView& view : work.views) {
    widest = std::max(widest, view.width);
    highest = std::max(highest, view.height);
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
  // Stored rows that a whole band sees.
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

// Parameters from pinned memory by a kernel that reads them over the link: a copy would queue behind the
// batches in the copy engine, and the transform with it.
__global__ void __launch_bounds__(kThreads)
    upload_words(uint4* target, const uint4* source, std::uint32_t words) {
  for (std::uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < words; i += gridDim.x * kThreads)
    target[i] = source[i];
}

void upload(std::byte* device, const std::byte* pinned, std::size_t bytes, cudaStream_t stream) {
  const auto words = static_cast<std::uint32_t>((bytes + 15) / 16);
  upload_words<<<(words + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
      reinterpret_cast<uint4*>(device), reinterpret_cast<const uint4*>(pinned), words);
  check(cudaGetLastError(), "upload");
}

}  // namespace

void launch_upload(const CopyItem& item, cudaStream_t stream) {
  if (item.size_bytes > 0) upload(item.target, item.source, item.size_bytes, stream);
}

std::size_t transform_scratch_bytes(const TransformWork& work) noexcept {
  return sizeof(Tables) + work.sources.size() * sizeof(SampleRecord);
}

void launch_transform(const TransformWork& work, std::byte* pinned, std::byte* device, cudaStream_t stream) {
  check_work(work);
  const std::size_t samples = work.sources.size();
  if (samples == 0) return;
  bool resized = false;
  auto* const records = reinterpret_cast<SampleRecord*>(pinned + sizeof(Tables));
  for (std::size_t i = 0; i < samples; ++i) {
    check_view(work, i);
    const SampleView& view = work.views[i];
    resized = resized || resizes(work, view);
    records[i] = {reinterpret_cast<const std::uint8_t*>(work.sources[i]),
                  view.left,
                  view.top,
                  view.width,
                  view.height,
                  view.flip ? 1U : 0U,
                  0};
  }
  const ValueMap* const map = work.stored.dtype != work.delivered.dtype ? &cached_value_map(work) : nullptr;
  if (map != nullptr) std::memcpy(pinned, map->bits.data(), sizeof(Tables));
  const std::size_t begin = map != nullptr ? 0 : sizeof(Tables);
  upload(device + begin, pinned + begin, transform_scratch_bytes(work) - begin, stream);
  const Launch launch = make_launch(work, map, device);
  if (resized)
    launch_resize(work, launch, stream);
  else
    launch_copy(work, launch, stream);
  check(cudaGetLastError(), "launch of the transform");
}

std::size_t gather_scratch_bytes(std::size_t items) noexcept {
  return (items * sizeof(CopyItem) + 15) / 16 * 16;
}

void launch_gather(std::span<const CopyItem> items, std::byte* pinned, std::byte* device,
                   cudaStream_t stream) {
  if (items.empty()) return;
  std::uint64_t largest = 1;
  for (const CopyItem& item : items) largest = std::max(largest, item.size_bytes);
  std::memcpy(pinned, items.data(), items.size_bytes());
  upload(device, pinned, items.size_bytes(), stream);
  const auto blocks = static_cast<unsigned>(
      std::min<std::uint64_t>((largest + kGatherBlockBytes - 1) / kGatherBlockBytes, 1U << 20U));
  const dim3 grid(blocks, static_cast<unsigned>(std::min<std::size_t>(items.size(), kMaxGridY)));
  gather_items<<<grid, kThreads, 0, stream>>>(reinterpret_cast<const CopyItem*>(device),
                                              static_cast<std::uint32_t>(items.size()));
  check(cudaGetLastError(), "launch of a gather");
}

}  // namespace shard
