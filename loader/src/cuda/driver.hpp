// The CUDA driver's functions, looked up at run time: the library links the runtime only.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace shard {

// The function as it was in version `version` (1000 * major + 10 * minor) of CUDA,
// or null if the driver has no such function. Throws Error(io).
void* find_driver_function(const char* name, int version);

// Throws Error(unsupported) naming the function if the driver does not have it, Error(io).
void* require_driver_function(const char* name);

template <class Function>
Function driver_function(const char* name) {
  return reinterpret_cast<Function>(require_driver_function(name));
}

}  // namespace shard
