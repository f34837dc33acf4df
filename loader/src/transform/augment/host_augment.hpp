// A work with programs (TransformWork::begins), on the calling thread: each sample is made into u8 pixels,
// its program executed, and the pixels made into the delivered sample.
#pragma once

#include <cstddef>

#include "shard/loader/transform.hpp"

namespace shard::augment {

// What programs work on: `delivered` as u8 [row, column, channel].
SampleSpec pixels_of(const SampleSpec& delivered) noexcept;

// Throws invalid_argument if the programs of a work do not fit its samples, or are none.
void check_programs(const TransformWork& work);

// Rows [first, last) of a work that check_work() and check_programs() accept.
void augment_rows(const TransformWork& work, std::size_t first, std::size_t last);

}  // namespace shard::augment
