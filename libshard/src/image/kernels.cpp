#include "kernels.hpp"

namespace shard::image {

ResampleKernels resample_kernels() { return scalar_resample_kernels(); }

}  // namespace shard::image
