// Four neighbouring pixels as a batch delivers them, stored as vectors where they are aligned.
//
// Included by files that are built without contraction of floating-point expressions (see CMakeLists.txt).
#pragma once

#include <cstdint>

#include "cuda/kernels/launch.cuh"

namespace shard::gpu {

inline constexpr std::uint32_t kQuad = 4;  // pixels

// Delivered elements of 1, 2 or 4 bytes, four at a time.
template <class Element>
struct Quad;
template <>
struct Quad<std::uint8_t> {
  using Vector = std::uint32_t;
  static __device__ Vector of(const std::uint8_t* e) {
    return e[0] | std::uint32_t{e[1]} << 8U | std::uint32_t{e[2]} << 16U | std::uint32_t{e[3]} << 24U;
  }
};
template <>
struct Quad<std::uint16_t> {
  using Vector = uint2;
  static __device__ Vector of(const std::uint16_t* e) {
    return {e[0] | std::uint32_t{e[1]} << 16U, e[2] | std::uint32_t{e[3]} << 16U};
  }
};
template <>
struct Quad<std::uint32_t> {
  using Vector = uint4;
  static __device__ Vector of(const std::uint32_t* e) { return {e[0], e[1], e[2], e[3]}; }
};

// Four pixels, of which the first `pixels` are there, to the elements at `out`.
// value_of(channel, byte): the element.
template <class Element, std::uint32_t kChannels, class ValueOf>
__device__ void store_pixels(const Launch& launch, bool aligned, std::uint32_t pixels, std::uint64_t out,
                             const std::uint8_t (&bytes)[kChannels][kQuad], const ValueOf& value_of) {
  auto* const target = reinterpret_cast<Element*>(launch.target) + out;
  if (!aligned) {
#pragma unroll
    for (std::uint32_t channel = 0; channel < kChannels; ++channel)
#pragma unroll
      for (std::uint32_t i = 0; i < kQuad; ++i)
        if (i < pixels)
          __stcs(target + channel * launch.out.plane + i * launch.out.pixel,
                 value_of(channel, bytes[channel][i]));
    return;
  }
  const auto store = [&](std::uint64_t at, const Element* four) {
    auto* const place = reinterpret_cast<typename Quad<Element>::Vector*>(target + at);
    if (launch.reused)
      *place = Quad<Element>::of(four);
    else
      __stcs(place, Quad<Element>::of(four));
  };
  // Apart from each other: in one loop for both, each element would ask which it is.
  if (launch.planar_out) {
#pragma unroll
    for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
      Element four[kQuad];
#pragma unroll
      for (std::uint32_t i = 0; i < kQuad; ++i) four[i] = value_of(channel, bytes[channel][i]);
      store(channel * launch.out.plane, four);
    }
  } else {
    Element elements[kQuad * kChannels];
#pragma unroll
    for (std::uint32_t i = 0; i < kQuad * kChannels; ++i)
      elements[i] = value_of(i % kChannels, bytes[i % kChannels][i / kChannels]);
#pragma unroll
    for (std::uint32_t v = 0; v < kChannels; ++v) store(v * kQuad, elements + v * kQuad);
  }
}

template <std::uint32_t kChannels>
__device__ void deliver_pixels(const Launch& launch, const std::uint32_t* tables, bool aligned,
                               std::uint32_t pixels, std::uint64_t out,
                               const std::uint8_t (&bytes)[kChannels][kQuad]) {
  switch (launch.values) {
    case Values::same:
      return store_pixels<std::uint8_t>(launch, aligned, pixels, out, bytes,
                                        [](std::uint32_t, std::uint8_t byte) { return byte; });
    case Values::table32:
      return store_pixels<std::uint32_t>(
          launch, aligned, pixels, out, bytes,
          [&](std::uint32_t channel, std::uint8_t byte) { return tables[channel * 256 + byte]; });
    case Values::table16:
      return store_pixels<std::uint16_t>(launch, aligned, pixels, out, bytes,
                                         [&](std::uint32_t channel, std::uint8_t byte) {
                                           return static_cast<std::uint16_t>(tables[channel * 256 + byte]);
                                         });
    case Values::line_f16:
      return store_pixels<std::uint16_t>(launch, aligned, pixels, out, bytes,
                                         [&](std::uint32_t channel, std::uint8_t byte) {
                                           return line_value<Values::line_f16>(launch, channel, byte);
                                         });
    case Values::line_bf16:
      return store_pixels<std::uint16_t>(launch, aligned, pixels, out, bytes,
                                         [&](std::uint32_t channel, std::uint8_t byte) {
                                           return line_value<Values::line_bf16>(launch, channel, byte);
                                         });
  }
}

}  // namespace shard::gpu
