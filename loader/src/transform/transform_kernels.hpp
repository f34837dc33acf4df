// The inner loops of the host's transform, chosen at run time for the CPU.
//
// `in` and `out` never overlap. Functions with an array take elements of 1, 2 and 4 bytes, in this order.
// "Pixels" are `channels` (1 to 4) interleaved elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transform/resize_plan.hpp"
#include "transform/value_map.hpp"

namespace shard {

// Constants of a run of bytes, lane by lane: those of one channel, or of interleaved channels in turn.
struct ValueLanes {
  static constexpr std::size_t kMaxLanes = 16;  // floats of a vector
  using Lanes = std::array<float, 4 * kMaxLanes>;

  const ValueMap* map = nullptr;
  std::uint32_t first_channel = 0;
  std::uint32_t channels = 1;  // the pattern's length
  alignas(64) Lanes scale{};
  alignas(64) Lanes bias{};
  alignas(64) Lanes mean{};
  alignas(64) Lanes std{};
  alignas(64) Lanes inverse_std{};

  void set(const ValueMap& value_map, std::uint32_t channel, std::uint32_t channel_count);
};

struct TransformKernels {
  // Rows of the box (plan.reach bytes readable from each) -> resized rows of values (arithmetic.hpp). `soon`:
  // as many rows that are likely to be read next, brought to the cache meanwhile; never read by the call.
  void (*horizontal)(const HorizontalPlan& plan, const std::uint8_t* const* rows,
                     const std::uint8_t* const* soon, std::size_t count, std::int16_t* const* outs);
  // Weighted sum of `taps` such rows -> n bytes. Rows are readable up to the next multiple of 64 values.
  void (*vertical)(const std::int16_t* const* rows, const std::int16_t* weights, std::size_t taps,
                   std::size_t n, std::uint8_t* out, bool past_caches);

  using Reverse = void (*)(const std::byte* in, std::size_t pixels, std::uint32_t channels, std::byte* out);
  using Split = void (*)(const std::byte* in, std::size_t pixels, std::uint32_t channels,
                         std::byte* const* planes);
  using Join = void (*)(const std::byte* const* planes, std::size_t pixels, std::uint32_t channels,
                        std::byte* out);
  std::array<Reverse, 3> reverse;  // the sequence of pixels
  std::array<Split, 3> split;      // pixels -> planes
  std::array<Join, 3> join;        // planes -> pixels

  // Bytes -> values by a line (map.fused) or by the steps of the definition; not always the bits of the
  // table, so the caller compares before it uses them. Stores go past the caches where `out` is aligned.
  using Values = void (*)(const ValueLanes& lanes, const std::uint8_t* in, std::size_t n, std::byte* out);
  Values values_by_line;
  Values values_by_steps;
};

TransformKernels transform_kernels();
TransformKernels scalar_transform_kernels();
// Waits for stores past the caches.
void flush_stores() noexcept;
// Bytes -> values by the table: always right.
void values_by_table(const ValueLanes& lanes, const std::uint8_t* in, std::size_t n, std::byte* out);

}  // namespace shard
