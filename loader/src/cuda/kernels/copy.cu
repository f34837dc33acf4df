// Boxes of the delivered size: flip, value, layout.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/kernels/launch.cuh"

namespace shard::gpu {

namespace {

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
      const auto [channel, from] = origin_of(launch, record, e);
      const Element value = __ldcs(source + from);
      const std::uint64_t at = sample * launch.out.sample + e;
      if constexpr (sizeof(Element) == 1)
        store_value(launch, launch.tables, channel, value, at);
      else
        __stcs(reinterpret_cast<Element*>(launch.target) + at, value);
    }
  }
}

// One channel of 8 pixels whose bytes are interleaved: as words of 4 pixels.
__device__ uint2 bytes_of_channel(const std::uint32_t (&bytes)[6], std::uint32_t channel) {
  std::uint32_t words[2] = {};
#pragma unroll
  for (std::uint32_t pixel = 0; pixel < 8; ++pixel) {
    const std::uint32_t at = pixel * 3 + channel;
    words[pixel / 4] |= (bytes[at / 4] >> (at % 4 * 8) & 0xFFU) << (pixel % 4 * 8);
  }
  return {words[0], words[1]};
}
__device__ std::uint32_t byte_at(uint2 bytes, std::uint32_t pixel) {
  return (pixel < 4 ? bytes.x : bytes.y) >> (pixel % 4 * 8) & 0xFFU;
}

// 8 values of a channel, stored at `target`, which is aligned for vectors.
template <Values kValues, class Table>
__device__ void store_values(const Launch& launch, const Table* tables, std::uint32_t channel, uint2 bytes,
                             std::byte* target) {
  if constexpr (kValues == Values::same) {
    __stcs(reinterpret_cast<uint2*>(target), bytes);
  } else if constexpr (kValues == Values::table32) {
    const Table* const table = tables + channel * 256;
#pragma unroll
    for (std::uint32_t four = 0; four < 8; four += 4)
      __stcs(reinterpret_cast<uint4*>(target) + four / 4,
             make_uint4(table[byte_at(bytes, four)], table[byte_at(bytes, four + 1)],
                        table[byte_at(bytes, four + 2)], table[byte_at(bytes, four + 3)]));
  } else {
    std::uint32_t pairs[4];
#pragma unroll
    for (std::uint32_t pair = 0; pair < 4; ++pair) {
      const std::uint32_t a = byte_at(bytes, 2 * pair);
      const std::uint32_t b = byte_at(bytes, 2 * pair + 1);
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
    __stcs(reinterpret_cast<uint4*>(target), make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
  }
}

// Interleaved RGB bytes -> planes: one thread makes 8 pixels. Sources lie on 4-byte boundaries and are whole
// words long, widths are multiples of 8.
template <Values kValues>
__global__ void __launch_bounds__(kThreads) copy_rgb(const __grid_constant__ Launch launch) {
  constexpr bool kTables = kValues == Values::table16 || kValues == Values::table32;
  using Table = std::conditional_t<kValues == Values::table32, std::uint32_t, std::uint16_t>;
  constexpr std::uint32_t kBytes = kValues == Values::same ? 1 : kValues == Values::table32 ? 4 : 2;
  __shared__ Table tables[kTables ? 3 * 256 : 1];
  if constexpr (kTables) {
    for (std::uint32_t i = threadIdx.x; i < 3 * 256; i += kThreads)
      tables[i] = static_cast<Table>(launch.tables[i]);
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
      for (int i = 0; i < 6; ++i) raw[i] = __ldcs(words + i);
      raw[6] = shift != 0 ? __ldcs(words + 6) : 0;  // only where it holds wanted bytes
      std::uint32_t bytes[6];
#pragma unroll
      for (int i = 0; i < 6; ++i) bytes[i] = __funnelshift_r(raw[i], raw[i + 1], shift);

#pragma unroll
      for (std::uint32_t channel = 0; channel < 3; ++channel) {
        uint2 values = bytes_of_channel(bytes, channel);
        if (record.flip != 0) values = {__byte_perm(values.y, 0, 0x0123), __byte_perm(values.x, 0, 0x0123)};
        const std::uint64_t element =
            sample * launch.out.sample + channel * launch.out.plane + y * launch.out.row + x;
        store_values<kValues>(launch, tables, channel, values, launch.target + kBytes * element);
      }
    }
  }
}

bool suits_copy_rgb(const TransformWork& work) {
  const auto on_words = [](const std::byte* source) {
    return reinterpret_cast<std::uintptr_t>(source) % 4 == 0;
  };
  return work.stored.dtype == DType::u8 && work.stored.layout == Layout::nhwc && work.stored.channels == 3 &&
         work.delivered.layout == Layout::nchw && work.delivered.width % 8 == 0 &&
         work.stored.size_bytes() % 4 == 0 && reinterpret_cast<std::uintptr_t>(work.target) % 16 == 0 &&
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

}  // namespace

void launch_copy(const TransformWork& work, const Launch& launch, cudaStream_t stream) {
  if (suits_copy_rgb(work)) {
    const dim3 grid = grid_of(launch.out.plane / 8, launch.samples);
    const auto run = [&](auto* kernel) { kernel<<<grid, kThreads, 0, stream>>>(launch); };
    switch (launch.values) {
      case Values::same:
        return run(copy_rgb<Values::same>);
      case Values::table16:
        return run(copy_rgb<Values::table16>);
      case Values::table32:
        return run(copy_rgb<Values::table32>);
      case Values::line_f16:
        return run(copy_rgb<Values::line_f16>);
      case Values::line_bf16:
        return run(copy_rgb<Values::line_bf16>);
    }
  }
  const std::size_t element_bytes = size_bytes(work.stored.dtype);
  if (element_bytes == 1)
    launch_copy_elements<std::uint8_t>(launch, stream);
  else if (element_bytes == 2)
    launch_copy_elements<std::uint16_t>(launch, stream);
  else if (element_bytes == 4)
    launch_copy_elements<std::uint32_t>(launch, stream);
  else
    launch_copy_elements<unsigned long long>(launch, stream);
}

}  // namespace shard::gpu
