// The transform on the calling thread, with vectors for the CPU it runs on. Same bits as the CUDA kernels.
#pragma once

#include <cstddef>

#include "shard/loader/transform.hpp"

namespace shard {

// Makes rows [first, last) of the batch. Several threads may make different rows of one work. Reads nothing
// outside [sources[i], sources[i] + stored.size_bytes() or frame_bytes[i]), and writes nothing outside the
// rows and their entries of `broken`. Other threads see the rows after the usual synchronisation. Errors:
// invalid_argument (check_work.hpp).
void transform_rows(const TransformWork& work, std::size_t first, std::size_t last);

}  // namespace shard
