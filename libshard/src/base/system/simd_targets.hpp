// Which instruction sets the vector code may use; for tests and measurements. Not thread safe.
#pragma once

#include <string>
#include <vector>

namespace shard {

// The names of the instruction sets of this build that the CPU supports, best first: "AVX3", "AVX2", ...,
// "SCALAR".
std::vector<std::string> simd_targets();
// Objects that are made afterwards use this one. An empty name selects the best again. Throws
// invalid_argument.
void use_simd_target(const std::string& name);

}  // namespace shard
