#include "cuda/driver.hpp"

#include <fmt/format.h>

#include "cuda/context.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

// cuGetProcAddress as of CUDA 12.0. The runtime has two ways to get at it: the first is gone in CUDA 13, the
// second came with 12.5.
using GetProcAddress = CUresult (*)(const char* name, void** function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* found);

GetProcAddress find_get_proc_address() {
  constexpr const char* kName = "cuGetProcAddress";
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(kName, &function, 12'000, cudaEnableDefault, &found);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(kName, &function, cudaEnableDefault, &found);
#endif
  check_cuda(error, kName);
  if (found != cudaDriverEntryPointSuccess || function == nullptr)
    throw Error(ErrorCode::unsupported, "the CUDA driver is older than 12.0: install a newer one");
  return reinterpret_cast<GetProcAddress>(function);
}

}  // namespace

void* find_driver_function(const char* name, int version) {
  static const GetProcAddress get_proc_address = find_get_proc_address();
  void* function = nullptr;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result = get_proc_address(name, &function, version, CU_GET_PROC_ADDRESS_DEFAULT, &found);
  if (result == CUDA_ERROR_NOT_FOUND || found != CU_GET_PROC_ADDRESS_SUCCESS) return nullptr;
  if (result != CUDA_SUCCESS)
    throw Error(ErrorCode::io,
                fmt::format("CUDA: cuGetProcAddress of {}: error {}", name, static_cast<int>(result)));
  return function;
}

void* require_driver_function(const char* name) {
  void* const function = find_driver_function(name, 12'000);
  if (function == nullptr)
    throw Error(ErrorCode::unsupported, fmt::format("the CUDA driver has no {}: install a newer one", name));
  return function;
}

}  // namespace shard
