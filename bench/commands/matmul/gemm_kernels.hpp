// The inner parts of Gemm, one version for each instruction set.
#pragma once

#include <cstddef>

namespace shard::bench {

// Panels of `rows` rows of a and of `columns` columns of b lie packed: for each k the rows (columns) side by
// side, zeros behind the edge.
struct GemmKernels {
  std::size_t rows = 0;
  std::size_t columns = 0;
  // c[rows, columns] (pitch floats between rows) = or += the product of two panels of depth k.
  void (*tile)(std::size_t k, const float* a, const float* b, float* c, std::size_t pitch,
               bool add) = nullptr;
  // `iterations` rounds of independent multiply-adds in registers. Returns their number in `operations`
  // (floating-point operations), and something of the values, so that they are computed.
  float (*spin)(std::size_t iterations, double& operations) = nullptr;
  const char* target = "";
};
GemmKernels gemm_kernels();

}  // namespace shard::bench
