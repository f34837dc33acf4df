// Stream::follow() on the calling thread, and what both devices check before they read or write memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "shard/loader/targets.hpp"

namespace shard::targets {

// Throws invalid_argument: numbers of crops, sizes, begins or pairs that do not fit the sources, a box
// outside of the stored sample, steps that are not geometric, a dtype or layout that cannot be followed.
void check_targets(const TargetWork& work);

// Makes rows first to last - 1 of the target. The work must have been checked.
// With pairs, a row also reads the source of its neighbour.
void follow_rows(const TargetWork& work, std::size_t first, std::size_t last);

// TargetWork::fill as an element of the stored dtype, in the lower bits.
std::uint32_t fill_bits(const TargetWork& work) noexcept;

// The source of a row.
SampleSpec stored_spec(const TargetWork& work, std::size_t row) noexcept;

// A copy that has the arrays of `work` too.
std::shared_ptr<const TargetWork> owned_copy(const TargetWork& work);

// Of crops[row] (target_math.hpp).
struct CropMap;
CropMap crop_map(const TargetWork& work, std::size_t row) noexcept;

}  // namespace shard::targets
