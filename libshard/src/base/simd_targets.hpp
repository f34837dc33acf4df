// Which instruction sets the vector code may use; for tests and measurements. Not thread safe.
#pragma once

#include <string>
#include <vector>

namespace shard {

// Names of those that this build has and this CPU supports, best first: "AVX3", "AVX2", ..., "SCALAR".
std::vector<std::string> simd_targets();
// Objects made from now on use this one; an empty name gives the best again. Throws invalid_argument.
void use_simd_target(const std::string& name);

}  // namespace shard
