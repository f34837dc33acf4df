// What the kernels of the transform share: the parameters of a launch, and how a byte becomes a delivered
// value.
//
// Included by files that are built without contraction of floating-point expressions (see CMakeLists.txt).
// Fused steps are written explicitly.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "shard/packed_format.hpp"
#include "transform/value_map.hpp"

namespace shard::gpu {

inline constexpr unsigned kThreads = 256;
inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kMaxGridY = 65535;

// What the device must know of one sample. The scratch of a launch has the tables, then one record per
// sample.
struct SampleRecord {
  const std::uint8_t* source;
  std::uint32_t left;
  std::uint32_t top;
  std::uint32_t width;
  std::uint32_t height;
  std::uint32_t flip;
  std::uint32_t frame_units;  // codec packed: bytes of the frame / 16; 0: the length is not possible
};
static_assert(sizeof(SampleRecord) == 32);

// What it must know besides of a sample of any size, or of one that is resized exactly.
struct SampleGeometry {
  std::uint32_t stored_height;
  std::uint32_t stored_width;
  std::uint32_t resized_height;
  std::uint32_t resized_width;
  std::int32_t row;  // of the view, where the resized box begins
  std::int32_t column;
  // Not of this sample: the one that comes at this place when those of sees_many() come last.
  std::uint32_t ranked;
  std::uint32_t first_token;  // TransformWork::tokens; own sizes: TransformLaunch::units
};
static_assert(sizeof(SampleGeometry) == 32);

using Tables = std::array<ValueTable::Channel, 4>;
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
  const SampleGeometry* geometry;  // one for each record; null if the work is not exact
  std::uint32_t samples;
  std::uint32_t channels;
  Axes in;
  Axes out;
  bool planar_out;
  Values values;
  float scale[4];
  float bias[4];
  const float* normalization;  // more than four channels: the mean of each, then the std of each
  std::byte* target;
  bool reused;  // the target is read again soon
  // Exact works: each sample has the size that its box is resized to, without gaps, first_token x out.sample
  // elements behind the target. u8, nhwc.
  bool own_sizes;
};

// Of frames of codec packed.
struct Unpacking {
  std::uint32_t height;
  std::uint32_t width;
  std::uint32_t pairs;  // of rows
  std::uint32_t strips;
  std::uint32_t code_bytes;    // of a strip
  std::uint32_t first_unit;    // of the first strip, in units of 16 bytes
  std::uint64_t stored_units;  // of a frame that is stored as it is
  bool whole;                  // target: whole stored samples, of which only the boxes are filled
  std::uint32_t* broken;       // by sample; set to 1 if the frame is not valid
};

// Where element `e` of a delivered sample comes from, without a resize: its channel, and the element of the
// stored sample. Index: wide enough for a sample's elements.
struct ElementOrigin {
  std::uint32_t channel;
  std::uint64_t from;
};
template <class Index>
__device__ ElementOrigin origin_of(const Launch& launch, const SampleRecord& record, Index e) {
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
  return {channel, channel * launch.in.plane + (record.top + y) * launch.in.row +
                       std::uint64_t{record.left + x} * launch.in.pixel};
}

// By the line: kValues is line_f16 or line_bf16.
template <Values kValues>
__device__ std::uint16_t line_value(const Launch& launch, std::uint32_t channel, std::uint8_t byte) {
  const float value = __fmaf_rn(static_cast<float>(byte), launch.scale[channel], launch.bias[channel]);
  if constexpr (kValues == Values::line_f16) return __half_as_ushort(__float2half_rn(value));
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

// Samples and batches pass through the L2 cache only once, so their loads and stores are marked to be evicted
// first (__ldcs, __stcs). Otherwise they would evict the addresses of host pages that the copy engine needs,
// and random samples that are copied meanwhile would take longer (H200, 70 kB each: 45 GB/s instead of 54).

// `tables` may lie in shared memory.
__device__ inline void store_value(const Launch& launch, const std::uint32_t* tables, std::uint32_t channel,
                                   std::uint8_t byte, std::uint64_t element) {
  const auto store = [&](auto value) {
    __stcs(reinterpret_cast<decltype(value)*>(launch.target) + element, value);
  };
  switch (launch.values) {
    case Values::same:
      return store(byte);
    case Values::table32:
      return store(tables[channel * 256 + byte]);
    case Values::table16:
      return store(static_cast<std::uint16_t>(tables[channel * 256 + byte]));
    case Values::line_f16:
      return store(line_value<Values::line_f16>(launch, channel, byte));
    case Values::line_bf16:
      return store(line_value<Values::line_bf16>(launch, channel, byte));
  }
}

// The grid for `units` pieces, one per thread. Never larger than a grid may be.
inline dim3 grid_of(std::uint64_t units, std::size_t samples) {
  const std::uint64_t blocks = std::min<std::uint64_t>((units + kThreads - 1) / kThreads, 1U << 20U);
  return {static_cast<unsigned>(blocks), static_cast<unsigned>(std::min<std::size_t>(samples, kMaxGridY)), 1};
}

// Throws Error(io) if the last launch was refused.
void check_launch(const char* what);

// These functions queue the kernel that fits. cudaGetLastError() has their errors. This one: boxes of the
// delivered size.
void launch_copy(const TransformWork& work, const Launch& launch, cudaStream_t stream);
// Boxes of any size.
void launch_resize(const TransformWork& work, const Launch& launch, cudaStream_t stream);
// Stored floats and wide samples (check_work.hpp) whose values are computed.
// `resized`: some boxes do not have the delivered size.
void launch_floats(const TransformWork& work, const Launch& launch, bool resized, cudaStream_t stream);
// Exact works: boxes of any size, of samples of any size.
void launch_exact(const TransformWork& work, const Launch& launch, cudaStream_t stream);
// The same for samples that are not u8 of up to four channels.
void launch_exact_floats(const TransformWork& work, const Launch& launch, cudaStream_t stream);
// Whether outputs of this box see so many pixels that they are made by a launch of their own.
bool sees_many(const TransformWork& work, const SampleCrop& crop);
// Frames of codec packed: boxes of the delivered size, or (whole) of any size. If the launch has a geometry,
// frames have the sizes that it says, and record `samples + i` has as its source the place where sample i is
// unpacked to.
void launch_unpack(const Launch& launch, const Unpacking& unpacking, cudaStream_t stream);

}  // namespace shard::gpu
