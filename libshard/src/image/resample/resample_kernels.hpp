// The inner loops of resize and normalise, chosen at run time for the CPU.
//
// Between the two passes rows lie in pairs: a pair row holds rows 2p and 2p + 1 of the source (counted from
// the first one needed), 4 bytes for every two byte columns x, x + 1:  [even x][even x+1][odd x][odd x+1]. A
// pair row is pair_row_bytes(columns) long; bytes past the columns are arbitrary.
#pragma once

#include <cstddef>
#include <cstdint>

#include "image/resample/filter.hpp"

namespace shard::image {

inline constexpr std::uint32_t kMaxBatchRows = 16;
inline constexpr std::size_t kAlignment = 64;

// Columns are bytes: 3 for each pixel. Room for whole groups of 8 pixels and for whole vectors of the
// vertical pass.
inline constexpr std::size_t pair_row_bytes(std::size_t columns) {
  return ((columns + 23) / 24 * 48 + 255) / 128 * 128;
}

struct ResampleKernels {
  std::uint32_t batch_rows = 0;  // rows that one horizontal call takes: even, at most kMaxBatchRows
  // Bytes of scratch (aligned) that a horizontal call with this plan needs.
  std::size_t (*scratch_bytes)(const AxisPlan& plan) = nullptr;
  // batch_rows rows, each beginning at column plan.source_begin with row_bytes readable bytes -> batch_rows /
  // 2 pair rows.
  void (*horizontal)(const AxisPlan& plan, const std::uint8_t* const* rows, std::size_t row_bytes,
                     std::byte* scratch, std::uint8_t* const* pair_rows) = nullptr;
  // Output `y`, `columns` bytes, from the pair rows that its pairs name.
  void (*vertical)(const AxisPlan& plan, std::uint32_t y, const std::uint8_t* const* pair_rows,
                   std::size_t columns, std::uint8_t* out) = nullptr;
};

// Plain loops; what the vector versions must equal, and what targets without fixed-size vectors run.
ResampleKernels scalar_resample_kernels();
// The best for this CPU.
ResampleKernels resample_kernels();

}  // namespace shard::image
