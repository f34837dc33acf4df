// Mixes pairs of a delivered batch on the calling thread.
#pragma once

#include <cstddef>

#include "shard/loader/transform.hpp"

namespace shard::augment {

// Throws invalid_argument if there are not half as many pairs as rows, or the samples are not stored as u8.
void check_pairs(const TransformWork& work);
// Pairs [first, last) of a work whose rows are made.
void mix_pairs(const TransformWork& work, std::size_t first, std::size_t last);

}  // namespace shard::augment
