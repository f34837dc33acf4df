// The transform on the calling thread, with vectors for the CPU it runs on. Same bits as the CUDA kernels.
#pragma once

#include <cstddef>

#include "shard/loader/transform.hpp"

namespace shard {

// Rows [first, last) of the batch. Threads may share a work when their rows differ. Reads nothing outside
// [sources[i], sources[i] + stored.size_bytes() or frame_bytes[i]), writes nothing outside the rows and their
// entries of `broken`; written rows are visible to other threads after the usual synchronisation. Errors:
// invalid_argument (check_work.hpp).
void transform_rows(const TransformWork& work, std::size_t first, std::size_t last);

}  // namespace shard
