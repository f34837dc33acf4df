#include "cuda/batched_copy.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/text/quote.hpp"
#include "cuda/context.hpp"
#include "cuda/driver.hpp"
#include "shard/error.hpp"

namespace shard {

namespace {

constexpr const char* kVariable = "SHARD_CUDA_COPY";
constexpr const char* kFunction = "cuMemcpyBatchAsync";
constexpr int kCuda12_8 = 12'080;
constexpr int kCuda13 = 13'000;

constexpr std::array<std::pair<std::string_view, CopyMethod>, 4> kMethods{
    {{"driver", CopyMethod::driver},
     {"driver-13", CopyMethod::driver_13},
     {"kernel", CopyMethod::kernel},
     {"one-by-one", CopyMethod::one_by_one}}};

// CUmemcpyAttributes, which toolkits before 12.8 do not declare.
struct Location {
  int type = 0;
  int id = 0;
};
struct Attributes {
  int source_access_order = 1;  // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
  Location source_hint;
  Location target_hint;
  unsigned flags = 0;
};
#if CUDA_VERSION >= 12080
static_assert(sizeof(Attributes) == sizeof(CUmemcpyAttributes));
static_assert(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM == 1);
#endif

using Addresses = unsigned long long*;  // CUdeviceptr
using Function12 = CUresult (*)(Addresses targets, Addresses sources, std::size_t* sizes, std::size_t count,
                                Attributes* attributes, std::size_t* first_items, std::size_t attribute_count,
                                std::size_t* failed, CUstream stream);
using Function13 = CUresult (*)(Addresses targets, Addresses sources, std::size_t* sizes, std::size_t count,
                                Attributes* attributes, std::size_t* first_items, std::size_t attribute_count,
                                CUstream stream);

Function12 function_12() {
  static const auto function = reinterpret_cast<Function12>(find_driver_function(kFunction, kCuda12_8));
  return function;
}
Function13 function_13() {
  static const auto function = reinterpret_cast<Function13>(find_driver_function(kFunction, kCuda13));
  return function;
}

int driver_version() {
  int version = 0;
  check_cuda(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  return version;
}

// CUDA keeps the older form of a function beside the newer one.
bool has(CopyMethod method, bool kernels_read_host) {
  switch (method) {
    case CopyMethod::driver:
      return driver_version() >= kCuda12_8 && function_12() != nullptr;
    case CopyMethod::driver_13:
      return driver_version() >= kCuda13 && function_13() != nullptr;
    case CopyMethod::kernel:
      return kernels_read_host;
    case CopyMethod::one_by_one:
      return true;
  }
  return false;
}

ChosenCopy asked_for(std::string_view name, bool kernels_read_host) {
  for (const auto& [known, method] : kMethods) {
    if (known != name) continue;
    if (!has(method, kernels_read_host))
      throw Error(ErrorCode::unsupported,
                  fmt::format("{}={} asks for a way of copying that this driver or device does not have",
                              kVariable, name));
    if (method == CopyMethod::driver || method == CopyMethod::driver_13) return {method, {}};
    return {method, fmt::format("{}={} asks for it", kVariable, name)};
  }
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("the environment variable {} is {}; it can be driver, driver-13, kernel or one-by-one",
                  kVariable, quoted(name)));
}

}  // namespace

ChosenCopy choose_copy(bool kernels_read_host) {
  const char* const asked = std::getenv(kVariable);
  if (asked != nullptr && *asked != '\0') return asked_for(asked, kernels_read_host);
  for (const CopyMethod method : {CopyMethod::driver, CopyMethod::driver_13})
    if (has(method, kernels_read_host)) return {method, {}};
  const int version = driver_version();
  const std::string reason =
      fmt::format("the driver's CUDA is {}.{}; its call for many copies came with 12.8", version / 1000,
                  version % 1000 / 10);
  return {kernels_read_host ? CopyMethod::kernel : CopyMethod::one_by_one, reason};
}

void BatchedCopy::queue(std::span<const CopyItem> items, cudaStream_t stream) {
  targets_.clear();
  sources_.clear();
  sizes_.clear();
  for (const CopyItem& item : items) {
    targets_.push_back(reinterpret_cast<std::uintptr_t>(item.target));
    sources_.push_back(reinterpret_cast<std::uintptr_t>(item.source));
    sizes_.push_back(item.size_bytes);
  }
  Attributes attributes;
  std::size_t first = 0;
  std::size_t failed = 0;
  const CUresult result = method_ == CopyMethod::driver
                              ? function_12()(targets_.data(), sources_.data(), sizes_.data(), items.size(),
                                              &attributes, &first, 1, &failed, stream)
                              : function_13()(targets_.data(), sources_.data(), sizes_.data(), items.size(),
                                              &attributes, &first, 1, stream);
  if (result == CUDA_SUCCESS) return;
  // The runtime has the same codes, and texts for them.
  check_cuda(static_cast<cudaError_t>(result), kFunction);
}

}  // namespace shard
